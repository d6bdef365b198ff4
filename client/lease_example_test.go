package client_test

import (
	"fmt"
	"log"

	"github.com/doyen-election/doyen/client"
)

// Before each act, a program checks that its host's agent is inside its lease, and sends the token along. The check
// does not call the agent.
func ExampleOpenLease() {
	lease, err := client.OpenLease(client.LeasePath(client.DefaultSocket(), "payments"))
	if err != nil {
		log.Print(err) // fs.ErrNotExist: the election has had no candidate yet
		return
	}
	defer lease.Close()
	for _, payment := range []string{"rent", "power"} {
		token, remaining, ok := lease.Check()
		if !ok {
			return // another agent leads, or none
		}
		fmt.Printf("pay %s with token %d, %s before the end at the earliest\n", payment, token, remaining)
	}
}
