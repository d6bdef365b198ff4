package live

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

type front interface {
	intro(i int, agent, addr, socket string)
	line(Line)
	show(Model)
	keys() <-chan key
	// close restores the terminal, and then writes the summary.
	close(summary []string) error
}

// openFront takes the terminal, if the process has one. In a run that was given a time it leaves the
// terminal alone, because the caller only waits for the end.
func openFront(o Options) (front, error) {
	out, ok := o.Stdout.(*os.File)
	interactive := ok && o.For == 0 && o.Stdin != nil && o.Getenv("TERM") != "dumb" &&
		term.IsTerminal(int(out.Fd())) && term.IsTerminal(int(o.Stdin.Fd()))
	if !interactive {
		return &plainFront{out: o.Stdout}, nil
	}
	return openScreen(o.Stdin, out, o.Getenv("NO_COLOR") == "")
}

type plainFront struct{ out io.Writer }

func (p *plainFront) intro(i int, agent, addr, socket string) {
	if i == 0 {
		fmt.Fprintf(p.out, "Ask an agent: %s leader --socket SOCKET\n", asker())
		fmt.Fprintf(p.out, "          or: curl --unix-socket SOCKET http://d/v1/elections/default\n")
	}
	fmt.Fprintf(p.out, "  %-9s %-15s %s\n", agent, addr, socket)
}

func (p *plainFront) line(l Line)      { fmt.Fprintf(p.out, "%8.3f  %s\n", l.At.Seconds(), l.Text) }
func (p *plainFront) show(Model)       {}
func (p *plainFront) keys() <-chan key { return nil }

func (p *plainFront) close(summary []string) error {
	_, err := fmt.Fprintln(p.out, strings.Join(summary, "\n"))
	return err
}

// key is a key that was pressed: a letter, or one of the constants below.
type key rune

const (
	keyQuit key = -iota - 1
	keyUp
	keyDown
)

type screen struct {
	in, out *os.File
	before  *term.State
	colour  bool
	pressed chan key
}

const (
	enterScreen = "\x1b[?1049h\x1b[?25l\x1b[2J" // the other buffer, no cursor
	leaveScreen = "\x1b[?25h\x1b[?1049l"
)

func openScreen(in, out *os.File, colour bool) (*screen, error) {
	before, err := term.MakeRaw(int(in.Fd()))
	if err != nil {
		return nil, fmt.Errorf("take the terminal: %w", err)
	}
	s := &screen{in: in, out: out, before: before, colour: colour, pressed: make(chan key)}
	if _, err := io.WriteString(out, enterScreen); err != nil {
		_ = term.Restore(int(in.Fd()), before)
		return nil, fmt.Errorf("take the terminal: %w", err)
	}
	// This goroutine ends only with the process, because a read from a terminal can't be cancelled.
	go readKeys(bufio.NewReader(in), s.pressed)
	return s, nil
}

func (s *screen) intro(int, string, string, string) {}
func (s *screen) line(Line)                         {}
func (s *screen) keys() <-chan key                  { return s.pressed }

// show draws over the former picture, so that nothing flickers.
func (s *screen) show(m Model) {
	width, height, err := term.GetSize(int(s.out.Fd()))
	if err != nil {
		width, height = 80, 24
	}
	var frame strings.Builder
	frame.WriteString("\x1b[H")
	for i, l := range Render(m, width, height, s.colour) {
		if i > 0 {
			frame.WriteString("\r\n")
		}
		frame.WriteString(l + "\x1b[K")
	}
	frame.WriteString("\x1b[J")
	_, _ = io.WriteString(s.out, frame.String())
}

func (s *screen) close(summary []string) error {
	_, err := io.WriteString(s.out, leaveScreen)
	if restored := term.Restore(int(s.in.Fd()), s.before); restored != nil {
		return fmt.Errorf("give the terminal back: %w", restored)
	}
	fmt.Fprintln(s.out, strings.Join(summary, "\n"))
	return err
}

// readKeys sends the keys that are pressed and, when the input ends, keyQuit.
func readKeys(in *bufio.Reader, pressed chan<- key) {
	for {
		b, err := in.ReadByte()
		switch {
		case err != nil, b == 0x03, b == 0x04: // the input ended; Ctrl-C, Ctrl-D
			pressed <- keyQuit
			return
		case b == 0x1b:
			if k, ok := arrow(in); ok {
				pressed <- k
			}
		default:
			pressed <- key(b)
		}
	}
}

// arrow reads the rest of an arrow key. After a lone Escape, arrow waits for the next key, and
// both keys are lost.
func arrow(in *bufio.Reader) (key, bool) {
	if b, err := in.ReadByte(); err != nil || b != '[' {
		return 0, false
	}
	switch b, _ := in.ReadByte(); b {
	case 'A':
		return keyUp, true
	case 'B':
		return keyDown, true
	}
	return 0, false
}
