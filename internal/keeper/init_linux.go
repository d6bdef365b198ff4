package keeper

import "os"

// The one init of the program (decision 14): a keeper has no use for the packages that the
// agent needs, and the memory that they take when they are initialised. This one is initialised before
// them.
func init() {
	if len(os.Args) > 1 && os.Args[1] == Word {
		Main()
	}
}
