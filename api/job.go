package api

import "time"

// Jobs is the answer to GET /v1/jobs: the jobs of `doyen once` and `doyen cron`, sorted by name, as the voter
// that answers has them on record. That may be a moment older than what a leader has written.
type Jobs struct {
	Jobs []Job `json:"jobs"`
}

// Job is what an election's word says of a job.
type Job struct {
	Election string  `json:"election"`
	Kind     string  `json:"kind"`              // cron, key or series
	Spec     string  `json:"spec,omitempty"`    // of cron
	Zone     string  `json:"tz,omitempty"`      // of Spec; empty: UTC
	Done     string  `json:"done,omitempty"`    // all occurrences up to this one are settled
	Running  *JobRun `json:"running,omitempty"` // what is claimed: it may have started
	Last     *JobEnd `json:"last,omitempty"`    // the newest end
	Unknown  string  `json:"unknown,omitempty"` // the last occurrence that was passed over although nobody knows how it ended
	// Total is how many occurrences of cron ended in each way, or were missed, since its word exists.
	Total map[string]int `json:"total,omitempty"`
	// Missed is how many occurrences were passed over before Done, without a run, since the last one that ran.
	Missed int        `json:"missed,omitempty"`
	Next   *time.Time `json:"next,omitempty"` // of cron: when the next occurrence after Done is due
}

// JobRun is an occurrence that was claimed: a time in UTC, or a key.
type JobRun struct {
	Occurrence string    `json:"occurrence"`
	Term       uint64    `json:"term"`
	Try        int       `json:"try"` // from 1
	Since      time.Time `json:"since"`
	// Held is whether somebody leads the election; else nothing runs, and nobody has said yet how it ended.
	Held bool `json:"held"`
}

// JobEnd is how an occurrence ended.
type JobEnd struct {
	Occurrence string    `json:"occurrence"`
	Try        int       `json:"try"`
	End        string    `json:"end"` // finished, failed, timed out, stopped or unknown
	Code       int       `json:"code,omitempty"`
	When       time.Time `json:"when"`
}
