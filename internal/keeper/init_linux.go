package keeper

import "os"

// This is the program's only init (decision 14). It runs before the packages of the agent are
// initialised: a keeper needs neither these packages nor the memory that they would take.
func init() {
	if len(os.Args) > 1 && os.Args[1] == Word {
		Main()
	}
}
