package runner

import "time"

// Look makes a job's word be read again that often.
func Look(every time.Duration) { lookEvery = every }
