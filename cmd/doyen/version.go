package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/doyen-election/doyen/agent"
)

// commit is the source's commit. A release (make dist) sets it: it is built outside of git.
var commit string

// build is what `doyen version -o json` writes.
type build struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"` // the source's commit, with a "+" if the source was changed since
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func printVersion(i *invocation) error { return i.show(thisBuild(), versionText()+"\n") }

func thisBuild() build {
	b := build{Version: agent.Version, Revision: commit, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if info, ok := debug.ReadBuildInfo(); ok && commit == "" {
		b.Revision = revision(info.Settings)
	}
	return b
}

func versionText() string {
	b := thisBuild()
	from := ""
	if b.Revision != "" {
		from = b.Revision + ", "
	}
	return fmt.Sprintf("doyen %s (%s%s, %s)", b.Version, from, b.Go, b.Platform)
}

func revision(settings []debug.BuildSetting) string {
	of := map[string]string{}
	for _, s := range settings {
		of[s.Key] = s.Value
	}
	id := of["vcs.revision"]
	id = id[:min(12, len(id))]
	if id != "" && of["vcs.modified"] == "true" {
		id += "+"
	}
	return id
}
