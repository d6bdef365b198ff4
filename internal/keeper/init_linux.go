package keeper

import "os"

// The one init of the program (decision 14). A keeper needs neither the packages of the agent nor
// the memory that they take when they are initialised: this package is initialised before them.
func init() {
	if len(os.Args) > 1 && os.Args[1] == Word {
		Main()
	}
}
