//go:build !linux

package guard

import (
	"context"
	"log/slog"
	"os"
	"syscall"
)

// Adopt does nothing: only Linux has subreapers.
func Adopt() error { return nil }

func attributes(group int) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pgid: group}
}

func ownProgram() (string, error) { return os.Executable() }

// children returns none: this system can only end the process group.
func children(int) []int { return nil }

// ParentOf returns false, since this system does not show a process's parent.
func ParentOf(int) (int, bool) { return 0, false }

// EndLeftovers finds none: this system does not show who started a process.
func EndLeftovers(context.Context, string, *slog.Logger) int { return 0 }

func mark(string, uint64) string     { return "" }
func endMarked(string, *slog.Logger) {}

func Hurry() (nice int) { return 0 }
func calm(_, _, _ int)  {}
func hasten(_, _ int)   {}
