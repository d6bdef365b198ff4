package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/doyen-election/doyen/agent/actors"
	"github.com/doyen-election/doyen/agent/actors/proof"
	"github.com/doyen-election/doyen/api"
	"github.com/doyen-election/doyen/election"
)

const (
	// streamBuffer is how many bytes of lines the system may hold for a program that does not
	// read. A line takes about three times its length in that buffer.
	streamBuffer = 16 << 10
	// lastWord is the size of the system's buffer for the last line, which reports why the stream ends.
	lastWord     = 64 << 10
	lastWordTime = 50 * time.Millisecond
	// maxChatter is how many bytes a program may send after its request. The agent ignores them.
	maxChatter = 64 << 10
)

// stream is the connection that carries a candidacy.
type stream struct {
	of       *candidacies
	k        *actors.Candidacy
	conn     net.Conn
	unix     *net.UnixConn // the socket below conn
	accepted election.Instant
	process  *proof.Process // the process that connected; nil: its end can't be proven
	begun    bool           // the head of the answer is written
	cut      bool           // the last line was written only in part
	unread   time.Time      // since when some lines are unread; zero: all were read
	looked   time.Time      // when unread was last checked
	out      bytes.Buffer   // what is being written
}

type end uint8 // why a stream ends

const (
	over   end = iota // no line follows
	hungUp            // the program closed the connection
	late              // the program did not read in time
)

const streamHead = "HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n"

// run takes the connection over, and lasts as long as the candidacy: until the program closes
// the connection or reads too slowly, or the agent stops.
func (t *stream) run(w http.ResponseWriter) error {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		t.of.Campaigns.End(t.k.ID())
		return err
	}
	defer context.AfterFunc(t.of.ctx, func() { conn.Close() })() // closing conn ends whatever run waits for
	defer context.AfterFunc(t.of.streams.closing, func() {       // a program that does not read must not delay the close
		_ = conn.SetWriteDeadline(time.Now().Add(lastWordTime))
	})()
	t.conn = conn
	_ = t.unix.SetWriteBuffer(streamBuffer) // after an error, the system's own bound holds
	hangup := make(chan struct{})
	go func() {
		defer close(hangup)
		overhear(conn)
	}()
	why := t.relay(hangup)
	until, waits := t.of.Campaigns.End(t.k.ID())
	switch {
	case why == late:
		t.sayLate(until)
	case why == hungUp && waits:
		t.prove(until)
	}
	conn.Close()
	<-hangup
	return nil
}

// overhear reads what the program sends, and keeps none of it. It returns once the program has
// closed the connection or has sent too much.
func overhear(c net.Conn) {
	var b [256]byte
	for left := maxChatter; left > 0; {
		n, err := c.Read(b[:])
		if err != nil {
			return
		}
		left -= n
	}
}

// relay writes lines until the candidacy ends.
func (t *stream) relay(hangup <-chan struct{}) end {
	var gone <-chan struct{}
	if t.process != nil {
		gone = t.process.Gone()
	}
	for {
		select {
		case <-t.k.Ready():
			left := t.left()
			if left < 0 {
				return late
			}
			switch more, err := t.write(left); {
			case errors.Is(err, os.ErrDeadlineExceeded):
				return late
			case err != nil:
				return hungUp
			case !more:
				return over
			}
		case <-hangup:
			return hungUp
		case <-gone:
			gone = nil
			if !t.process.Alone() {
				t.of.Logger.Info("the process that was a candidate has ended, and another process holds its connection: a successor waits for a receipt or the lease",
					"campaign", t.k.ID(), "election", t.k.Election())
			}
		case <-t.of.streams.closing.Done():
			_, _ = t.write(lastWordTime)
			return over
		}
	}
}

// attentionFor is how long a program may leave lines unread before its candidacy ends. A program that
// is frozen, or does not read, stops acting when the last lease that it has read expires. Its agent must
// not keep the lead for much longer than that.
func attentionFor(lease time.Duration) time.Duration {
	return min(max(2*lease, 2*time.Second), writeTimeout)
}

// left is how much longer the program may leave lines unread. To save system calls, left checks for unread lines
// only four times in t.of.attention. While lines are unread, it checks at each call.
func (t *stream) left() time.Duration {
	now := time.Now()
	if !t.unread.IsZero() || now.Sub(t.looked) >= t.of.attention/4 {
		t.looked = now
		switch {
		case !unread(t.unix):
			t.unread = time.Time{}
		case t.unread.IsZero():
			t.unread = now
		}
	}
	if t.unread.IsZero() {
		return t.of.attention
	}
	return t.of.attention - now.Sub(t.unread)
}

// write sends the lines that wait, and reports whether more can follow.
func (t *stream) write(within time.Duration) (more bool, err error) {
	lines, more := t.k.Take()
	t.out.Reset()
	if !t.begun {
		t.out.WriteString(streamHead)
		t.begun = true
	}
	encoder := json.NewEncoder(&t.out)
	for _, l := range lines {
		_ = encoder.Encode(t.timed(l)) // plain fields, which always encode
	}
	if t.of.streams.closing.Err() != nil {
		within = lastWordTime
	}
	if err := t.conn.SetWriteDeadline(time.Now().Add(within)); err != nil {
		return false, err
	}
	n, err := t.conn.Write(t.out.Bytes())
	t.cut = n > 0 && t.out.Bytes()[n-1] != '\n'
	return more, err
}

// timed adds to a line how much is left until its deadline.
func (t *stream) timed(l api.CampaignEvent) api.CampaignEvent {
	if until := election.Instant(max(l.ValidUntilBoottimeNS, l.StopByBoottimeNS)); until > 0 {
		l.ValidForMS = max(0, until.Sub(t.of.Clock()).Milliseconds())
	}
	return l
}

// sayLate sends a last line to a program that has not read in time: the candidacy has ended. The program may
// read that line later. The system's buffer is enlarged for the line, since the buffer may be full.
func (t *stream) sayLate(until election.Instant) {
	t.of.Logger.Warn("a program does not read its campaign: the campaign ends", "campaign", t.k.ID(), "election", t.k.Election())
	line, err := json.Marshal(t.timed(api.CampaignEvent{Type: api.CampaignRevoked, Campaign: t.k.ID(), Election: string(t.k.Election()),
		StopByBoottimeNS: int64(until), Reason: "its campaign was not read for too long"}))
	if err != nil || t.cut {
		return
	}
	_ = t.unix.SetWriteBuffer(lastWord)
	_ = t.conn.SetWriteDeadline(time.Now().Add(lastWordTime))
	_, _ = t.conn.Write(append(line, '\n'))
}

// prove waits for a proof that the program has ended, and reports that to the campaigns: then a
// successor need not wait until the lease expires.
func (t *stream) prove(until election.Instant) {
	logger := t.of.Logger.With("campaign", t.k.ID(), "election", t.k.Election())
	if t.gone(until) {
		t.of.Campaigns.Gone(t.k.ID())
		logger.Info("the program that led has exited")
		return
	}
	logger.Info("the program that led closed its campaign, but did not provably exit")
}

// gone waits for the proof that the program is gone: the process that connected has ended, and no other
// process holds its connections. Waiting is needed, since the connections of a killed process close a
// moment before that process ends.
func (t *stream) gone(until election.Instant) bool {
	if t.process == nil {
		return false
	}
	select {
	case <-t.process.Gone():
		return t.process.Alone()
	case <-time.After(until.Sub(t.of.Clock())):
	case <-t.of.streams.closing.Done():
	}
	return false
}

// streams counts the connections that were taken over from the HTTP server, since the
// server's Shutdown does not wait for these.
type streams struct {
	mu      sync.Mutex     // held in begin and close, so that no stream begins once closing has ended
	running sync.WaitGroup // has one entry for each open stream
	closing context.Context
	end     context.CancelFunc // ends closing, when the server closes
}

func newStreams() *streams {
	s := &streams{}
	s.closing, s.end = context.WithCancel(context.Background())
	return s
}

// begin counts one more connection, and returns false if the server closes.
func (s *streams) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing.Err() == nil {
		s.running.Add(1)
		return true
	}
	return false
}

// close asks the streams to end, and waits for them until ctx ends.
func (s *streams) close(ctx context.Context) error {
	s.mu.Lock()
	s.end()
	s.mu.Unlock()
	empty := make(chan struct{})
	go func() {
		s.running.Wait()
		close(empty)
	}()
	select {
	case <-empty:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
