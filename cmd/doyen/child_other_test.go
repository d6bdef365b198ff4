//go:build !linux

package main

import "syscall"

// withThisProcess can't have a child killed here when this process is.
func withThisProcess() *syscall.SysProcAttr { return nil }
