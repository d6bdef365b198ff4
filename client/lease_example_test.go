package client_test

import (
	"fmt"
	"log"

	"github.com/doyen-election/doyen/client"
)

// Before each act a program checks that its host's agent is inside its lease,
// and gives the token to what it acts upon. It asks nobody for that.
func ExampleOpenLease() {
	lease, err := client.OpenLease(client.LeasePath(client.DefaultSocket(), "payments"))
	if err != nil {
		log.Print(err) // fs.ErrNotExist: nobody has stood in this election yet
		return
	}
	defer lease.Close()
	for _, payment := range []string{"rent", "power"} {
		token, remaining, ok := lease.Check()
		if !ok {
			return // somebody else leads, or nobody
		}
		fmt.Printf("pay %s with token %d, %s before the end at the earliest\n", payment, token, remaining)
	}
}
