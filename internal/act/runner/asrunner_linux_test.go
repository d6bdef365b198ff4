package runner_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/doyen-election/doyen/client"
	"github.com/doyen-election/doyen/internal/act/health"
	"github.com/doyen-election/doyen/internal/act/runner"
	"github.com/doyen-election/doyen/internal/jobs"
)

// asRunner, if set in the environment, makes this test binary a runner. Its value is the configuration.
const asRunner = "DOYEN_TEST_RUN"

type config struct {
	Socket  string
	Command []string
	Restart string
	Status  bool
	Wait    bool
	Grace   time.Duration

	Check    health.Check
	Ready    bool
	ReadyIn  time.Duration
	Watchdog time.Duration

	Timeout time.Duration
	Try     bool
	Job     *jobs.Config
	Look    time.Duration // how often the word is read again; 0: as in the product
}

func run(text string) int {
	var c config
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		panic(err)
	}
	os.Unsetenv(asRunner)
	if c.Look > 0 {
		runner.Look(c.Look)
	}
	var job *jobs.Job
	if c.Job != nil {
		var err error
		if job, err = jobs.New(*c.Job); err != nil {
			panic(err)
		}
	}
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGUSR2)
	status, err := runner.Run(context.Background(), runner.Config{
		Client: client.New(c.Socket), Election: "payments", Command: c.Command, Grace: c.Grace, Restart: c.Restart, Status: c.Status, Wait: c.Wait,
		Check: c.Check, Ready: c.Ready, ReadyIn: c.ReadyIn, Watchdog: c.Watchdog, Timeout: c.Timeout, Try: c.Try, Job: job,
		Signals: signals, Say: func(line string) { fmt.Fprintln(os.Stderr, line) },
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, "failed:", err)
		return 99
	}
	return status
}
