package client_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/doyen-election/doyen/client"
	"github.com/doyen-election/doyen/client/clienttest"
)

// electing starts an agent for the examples. It elects every candidate. If revoke is set, it revokes the first
// leadership after a moment.
func electing(revoke bool) (socket string, stop func()) {
	t := &exampleTB{}
	a := clienttest.Start(t)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		c := a.Stood()
		c.Elect(7, time.Minute)
		if revoke {
			c.Revoke("transferred", time.Minute)
			<-c.Receipts()
			c.Elect(9, time.Minute)
		}
	}()
	return a.Socket(), func() {
		<-ended
		for _, clean := range t.cleanups {
			defer clean()
		}
	}
}

// exampleTB plays a testing.TB in an example.
type exampleTB struct {
	testing.TB
	cleanups []func()
}

func (t *exampleTB) Helper()                   {}
func (t *exampleTB) Cleanup(f func())          { t.cleanups = append(t.cleanups, f) }
func (t *exampleTB) Fatal(args ...any)         { panic(fmt.Sprint(args...)) }
func (t *exampleTB) Fatalf(f string, a ...any) { panic(fmt.Sprintf(f, a...)) }

func ExampleClient_Run() {
	socket, stop := electing(true)
	defer stop()

	c := client.New(socket) // or client.New(client.DefaultSocket())
	defer c.Close()
	err := c.Run(context.Background(), "payments", func(ctx context.Context, token uint64) error {
		fmt.Println("leading under term", token)
		if token < 9 {
			<-ctx.Done() // another host is to take over: stop, and return when everything has stopped
			fmt.Println(context.Cause(ctx))
			return nil
		}
		return errors.New("the work is done") // while leading, this ends Run
	})
	fmt.Println(err)
	// Output:
	// leading under term 7
	// leadership of payments, term 7, has ended: transferred
	// leading under term 9
	// the work is done
}

func ExampleClient_Campaign() {
	socket, stop := electing(false)
	defer stop()

	c := client.New(socket)
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	leadership, err := c.Campaign(ctx, "payments") // waits until elected
	if err != nil {
		fmt.Println(err)
		return
	}
	defer leadership.Close() // gives the receipt: from then on, a successor may act
	// Work with leadership.Context(), and send the token along.
	fmt.Println("token", leadership.Token(), "valid", leadership.Valid())
	// Output: token 7 valid true
}
