package mutants

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
)

// Folder is where the mutants are, below the folder of the module.
const Folder = "testbed/mutants/testdata"

const (
	// seeds is how many worlds the simulation plays for a mutant that all earlier tests
	// missed.
	seeds = 250
	// limit is how long the tests of one package may run.
	limit = time.Minute
)

type Options struct {
	Names    []string      // of the mutants to run; none: all
	Since    string        // a commit: mutants of packages that have changed since it come first; "": none do
	For      time.Duration // begin no mutant after that time; 0: run all
	Jobs     int           // how many mutants run at once; 0: one per processor
	Progress io.Writer     // one line is written to it for each mutant that ends
}

// Check returns what is wrong with the options, in terms of the command line's flags.
func (o Options) Check() error {
	switch {
	case o.Since != "" && o.For <= 0:
		return errors.New("--since: it is the order for --for")
	case o.Jobs < 0:
		return fmt.Errorf("--jobs: %d is below 0", o.Jobs)
	}
	return nil
}

type Report struct {
	Outcomes []Outcome
	Untried  int // not tried, for lack of time
	Took     time.Duration
}

// Run makes each change and runs the suite on it. It needs the go command and a working
// directory inside the source tree. The error is about the run; mutants that no test noticed
// are in the report.
func Run(ctx context.Context, o Options) (Report, error) {
	began := time.Now()
	mod, err := findModule(ctx)
	if err != nil {
		return Report{}, err
	}
	all, err := Read(os.DirFS(filepath.Join(mod.root, filepath.FromSlash(Folder))))
	if err != nil {
		return Report{}, err
	}
	if all, err = choose(all, o.Names); err != nil {
		return Report{}, err
	}
	if o.For > 0 {
		if err := mod.order(ctx, all, o.Since); err != nil {
			return Report{}, err
		}
	}
	suite := stages(seeds)
	if err := mod.resolve(ctx, suite); err != nil {
		return Report{}, err
	}
	suite = slices.DeleteFunc(suite, func(s stage) bool { return !slices.ContainsFunc(all, s.sees) })
	fmt.Fprintf(o.Progress, "the suite without any change: %d packages\n", len(suite))
	if err := mod.baseline(ctx, suite); err != nil {
		return Report{}, err
	}
	outcomes, err := tryAll(ctx, trial{module: mod, suite: suite, limit: limit, end: began.Add(o.For)}, all, o)
	return Report{Outcomes: outcomes, Untried: len(all) - len(outcomes), Took: time.Since(began)}, errors.Join(err, ctx.Err())
}

type UnknownError struct{ Name string }

func (e *UnknownError) Error() string { return fmt.Sprintf("no mutant is called %q", e.Name) }

func choose(all []Mutant, names []string) ([]Mutant, error) {
	if len(names) == 0 {
		return all, nil
	}
	var chosen []Mutant
	for _, name := range names {
		i := slices.IndexFunc(all, func(m Mutant) bool { return m.Name == name })
		if i < 0 {
			return nil, &UnknownError{Name: name}
		}
		chosen = append(chosen, all[i])
	}
	return chosen, nil
}

// tryAll runs the mutants, several at once, each in its own scratch folder.
func tryAll(ctx context.Context, t trial, all []Mutant, o Options) ([]Outcome, error) {
	scratch, err := os.MkdirTemp("", "mutants-")
	if err != nil {
		return nil, fmt.Errorf("make scratch folder: %w", err)
	}
	defer os.RemoveAll(scratch)
	if o.Jobs <= 0 {
		o.Jobs = runtime.GOMAXPROCS(0)
	}
	outcomes := make([]Outcome, len(all))
	next := make(chan int)
	var (
		wg sync.WaitGroup
		mu sync.Mutex // guards Progress and errs
	)
	var errs error
	for range min(o.Jobs, len(all)) {
		wg.Go(func() {
			for i := range next {
				own := t
				own.scratch = filepath.Join(scratch, all[i].Name)
				err := os.Mkdir(own.scratch, 0o755)
				outcomes[i] = own.run(ctx, all[i])
				mu.Lock()
				errs = errors.Join(errs, err)
				fmt.Fprintln(o.Progress, outcomes[i].line())
				mu.Unlock()
			}
		})
	}
	begun := 0
	for begun < len(all) && (o.For == 0 || time.Now().Before(t.end)) {
		next <- begun
		begun++
	}
	close(next)
	wg.Wait()
	return outcomes[:begun], errs
}

// line says what became of a mutant, and which test noticed it.
func (o Outcome) line() string {
	text := fmt.Sprintf("%s (%s, %s): %s", o.Mutant.Name, o.Mutant.Rule, o.Mutant.Breaks, o.Verdict)
	if o.Noticed() {
		text += strings.TrimRight(" by "+o.Package+" "+o.Test, " ")
		if o.Package != o.Mutant.Where {
			text += ", not in " + o.Mutant.Where
		}
	}
	return fmt.Sprintf("%s (%.1fs)", text, o.Took.Seconds())
}

// Missed returns the mutants that no test noticed, and those that could not be tested.
func (r Report) Missed() []Outcome {
	return slices.DeleteFunc(slices.Clone(r.Outcomes), Outcome.Noticed)
}

// Summary is the report's last line.
func (r Report) Summary() string {
	return fmt.Sprintf("%d mutants, %d caught, in %v; %d not tried\n", len(r.Outcomes), len(r.Outcomes)-len(r.Missed()), r.Took.Round(time.Second), r.Untried)
}
