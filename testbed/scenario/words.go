package scenario

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/doyen-election/doyen/testbed/hosts"
)

// names resolves words that mean hosts: a name, all, running, or rest (the hosts that no fault
// ails now). Commas may separate names.
func (w *world) names(words []string) ([]string, error) {
	var found []string
	for _, word := range words {
		for _, part := range strings.Split(word, ",") {
			these, err := w.named(part)
			if err != nil {
				return nil, err
			}
			found = append(found, these...)
		}
	}
	if len(found) == 0 {
		return nil, errors.New("no host is named")
	}
	// In the order of the cluster: hosts with a vote come first.
	return slices.DeleteFunc(slices.Clone(w.config.Names()), func(name string) bool { return !slices.Contains(found, name) }), nil
}

func (w *world) named(word string) ([]string, error) {
	all := w.config.Names()
	switch word {
	case "all":
		return all, nil
	case "rest":
		return slices.DeleteFunc(slices.Clone(all), func(name string) bool { return len(w.afflicted[name]) > 0 }), nil
	case "running":
		return w.running(), nil
	case "":
		return nil, errors.New("an empty name: is a variable not set?")
	}
	if !slices.Contains(all, word) {
		return nil, fmt.Errorf("there is no host %q; there are %s, and the words all, rest and running", word, hosts.Short(all))
	}
	return []string{word}, nil
}

// running returns the hosts whose agent can answer.
func (w *world) running() []string {
	if w.lab == nil {
		return nil
	}
	return w.lab.Running()
}

// hostsOf resolves words to hosts. It lays out the cluster first, if necessary.
func (w *world) hostsOf(words []string) ([]*hosts.Host, error) {
	names, err := w.names(words)
	if err != nil {
		return nil, err
	}
	if err := w.ready(); err != nil {
		return nil, err
	}
	var found []*hosts.Host
	for _, name := range names {
		h, ok := w.lab.Cluster.Host(name)
		if !ok {
			return nil, fmt.Errorf("host %s was not laid out", name)
		}
		found = append(found, h)
	}
	return found, nil
}

func (w *world) oneHost(word string) (*hosts.Host, error) {
	found, err := w.hostsOf([]string{word})
	if err != nil {
		return nil, err
	}
	if len(found) != 1 {
		return nil, fmt.Errorf("%q means %d hosts, want one", word, len(found))
	}
	return found[0], nil
}

// option removes "KEY VALUE" from the words. It finds the last KEY that has a value.
func option(words []string, key string) (value string, rest []string) {
	for i := len(words) - 2; i >= 0; i-- {
		if words[i] == key {
			return words[i+1], slices.Concat(words[:i], words[i+2:])
		}
	}
	return "", words
}

// duration removes "KEY TIME" from the words.
func duration(words []string, key string, usual time.Duration) (time.Duration, []string, error) {
	value, rest := option(words, key)
	if value == "" {
		return usual, words, nil
	}
	d, err := time.ParseDuration(value)
	if err != nil || d <= 0 {
		return 0, nil, fmt.Errorf("%s %s: want a time such as 1.5s", key, value)
	}
	return d, rest, nil
}

// options splits the words before the first KEY=VALUE.
func options(words []string) (plain, pairs []string) {
	first := slices.IndexFunc(words, func(word string) bool { return strings.Contains(word, "=") })
	if first < 0 {
		first = len(words)
	}
	return words[:first], words[first:]
}

// timeOf reads a time in a script.
func timeOf(word string) (time.Duration, error) {
	d, err := time.ParseDuration(word)
	if err != nil || d <= 0 || d > maxWithin {
		return 0, fmt.Errorf("%q: want a time such as 2s, at most an hour", word)
	}
	return d, nil
}

func pair(word string) (key, value string, err error) {
	key, value, ok := strings.Cut(word, "=")
	if !ok || key == "" || value == "" {
		return "", "", fmt.Errorf("%q: want KEY=VALUE", word)
	}
	return key, value, nil
}

func share(text string) (float64, error) {
	number, percent := strings.CutSuffix(text, "%")
	f, err := strconv.ParseFloat(number, 64)
	if percent {
		f /= 100
	}
	if err != nil || !(f >= 0 && f <= 1) {
		return 0, fmt.Errorf("%q: want a share such as 5%% or 0.05", text)
	}
	return f, nil
}
