// Package jobsim searches simulated worlds for a job that starts an occurrence twice, or passes over
// one in silence. It plays the product's own internal/jobs.
//
// A world has three hosts whose wall clocks are up to 60 s wrong, one cron job, and a register with
// the guarantees of an election's word. Only the leader writes, and a write replaces the text that it
// names. A write without an answer takes effect or is lost; which one, is known when the word is read next.
// Runners, agents and hosts die, links are cut, leaderships are handed over and terms rise, many of these
// within half a second of the moment at which an occurrence is due. In some worlds clocks jump. Then the
// world heals, and is judged:
//
//   - An occurrence starts only on the leader's host, while no command lives. It starts once. With Rerun it
//     may start again, in a higher term and as a higher try.
//   - Every occurrence from the first one that a leader has waited for has a report of its end, or
//     of why it never ran.
//   - In the end the job goes on.
//
// It does not simulate how the word is kept (testbed/simulation does), nor processes that outlive
// their lease (testbed/soak).
package jobsim
