package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"path"
	"regexp"
	"strings"
	"time"
)

// help has the manual pages and the shell completions, by their paths below /usr/share on Debian. Other systems
// differ only in the path for zsh.
type help map[string][]byte

// listed matches one command in the help's list of commands: "   name, n   what it does".
var listed = regexp.MustCompile(`(?m)^   ([a-z-]+)(?:, [a-z]+)?  +\S`)

func (r *release) readHelp() (help, error) {
	program, err := r.build("", "", false) // for this machine
	if err != nil {
		return nil, err
	}
	h := help{}
	overview, err := r.run(nil, program, "help")
	if err != nil {
		return nil, err
	}
	_, after, _ := strings.Cut(overview, "\nCOMMANDS:\n")
	list, _, _ := strings.Cut(after, "\n\n")
	var names []string
	for _, found := range listed.FindAllStringSubmatch(list, -1) {
		if found[1] != "help" {
			names = append(names, found[1])
		}
	}
	if len(names) < 10 {
		return nil, fmt.Errorf("doyen help lists %d commands: its format is another one than expected", len(names))
	}
	pages := map[string]string{"doyen": overview}
	for _, name := range names {
		text, err := r.run(nil, program, name, "--help")
		if err != nil {
			return nil, err
		}
		pages["doyen-"+name] = text
	}
	for name, text := range pages {
		page := r.page(name, text, names)
		if h["man/man1/"+name+".1.gz"], err = compress([]byte(page)); err != nil {
			return nil, err
		}
	}
	for shell, at := range map[string]string{
		"bash": "bash-completion/completions/doyen", "zsh": "zsh/vendor-completions/_doyen", "fish": "fish/vendor_completions.d/doyen.fish",
	} {
		text, err := r.run(nil, program, "completion", shell)
		if err != nil {
			return nil, err
		}
		h[at] = []byte(text)
	}
	return h, nil
}

var (
	section = regexp.MustCompile(`^([A-Z ]+):$`)
	option  = regexp.MustCompile(`^   (-\S.*?)  +(\S.*)$`)
)

// page turns a command's help into a manual page. The page has the help's sections, an indented paragraph for
// each flag, and the other text unchanged.
func (r *release) page(name, text string, commands []string) string {
	var b strings.Builder
	fmt.Fprintf(&b, ".TH %s 1 %s \"doyen %s\" \"Doyen\"\n", quoteRoff(strings.ToUpper(name)), r.made.Format(time.DateOnly), r.version)
	verbatim := false
	literal := func(on bool) {
		if on != verbatim {
			b.WriteString(map[bool]string{true: ".nf\n", false: ".fi\n"}[on])
		}
		verbatim = on
	}
	heading := ""
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if found := section.FindStringSubmatch(line); found != nil {
			literal(false)
			heading = found[1]
			fmt.Fprintf(&b, ".SH %s\n", heading)
			continue
		}
		if heading == "NAME" && strings.TrimSpace(line) != "" { // whatis reads this line
			_, what, _ := strings.Cut(line, " - ")
			fmt.Fprintf(&b, "%s \\- %s\n", quoteRoff(name), quoteRoff(what))
			continue
		}
		if found := option.FindStringSubmatch(line); found != nil && strings.HasSuffix(heading, "OPTIONS") {
			literal(false)
			fmt.Fprintf(&b, ".TP\n.B %s\n%s\n", quoteRoff(found[1]), quoteRoff(found[2]))
			continue
		}
		if strings.TrimSpace(line) != "" {
			literal(true)
			b.WriteString(quoteRoff(strings.TrimPrefix(line, "   ")) + "\n")
		} else if verbatim {
			b.WriteString("\n")
		}
	}
	literal(false)
	b.WriteString(".SH SEE ALSO\n")
	if name != "doyen" {
		b.WriteString(".BR doyen (1)\n")
	} else {
		for i, c := range commands {
			end := ","
			if i == len(commands)-1 {
				end = ""
			}
			fmt.Fprintf(&b, ".BR doyen\\-%s (1)%s\n", quoteRoff(c), end)
		}
	}
	return b.String()
}

var roff = strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "`", `\(ga`, "…", "...")

// quoteRoff quotes a line of text for roff, the format of manual pages.
func quoteRoff(s string) string {
	s = roff.Replace(s)
	if strings.HasPrefix(s, ".") {
		s = `\&` + s
	}
	return s
}

// compress compresses without a time and a name, as gzip -n does.
func compress(content []byte) ([]byte, error) {
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(content); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// zshOf returns the path that a file of help has on systems other than Debian.
func zshOf(at string) string {
	if path.Dir(at) == "zsh/vendor-completions" {
		return "zsh/site-functions/" + path.Base(at)
	}
	return at
}
