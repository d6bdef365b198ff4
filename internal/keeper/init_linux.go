package keeper

import "os"

// The program has no other init (decision 14). It runs before the agent's packages are initialised: a keeper
// does not need them, nor the memory that they would take.
func init() {
	if len(os.Args) > 1 && os.Args[1] == Word {
		Main()
	}
}
