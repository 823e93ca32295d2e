package realtime

import (
	"context"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/parlor-games/parlor/internal/store/redisdb"
)

// ephemeralPrefix begins the payload of an ephemeral message on a topic's channel:
//
//	!<connection>.<seq>|<recipients>|<text>
//	!<connection>.<seq>.l.<op>|<recipients>|<text>
//	!<connection>.<seq>.b.<op>.<sender>.<time in ms>|<recipients>|<bytes>
//
// The second form is the first one with EphemeralMessage.Latest, and the third one is for bytes; it
// begins with "bl" if it is the latest, too.
//
// The recipients are user ids, separated by commas, and before them the user who gets nothing, as a
// negative number. The payload of an event begins with a digit, so the two cannot be confused. A
// node that does not know a form drops the message.
const ephemeralPrefix = "!"

const (
	markBinary = "b"
	markLatest = "l"
)

// EphemeralMessage goes to some or all clients of a topic, at most once, and is never stored.
type EphemeralMessage struct {
	Recipients   []int64 // user ids, ascending; empty: every client of the topic
	ExceptUserID int64   // a user among them who gets nothing; 0: none
	Text         []byte  // the event, as events.AppendMessage encodes it; nil for bytes
	Bytes        []byte  // without Text: the payload, which text clients get in base64
	SenderUserID int64   // with Bytes
	Op           string  // the number of the op, with Bytes; with Latest, what a newer message of the sender replaces
	Latest       bool    // of those that wait in the queue of a slow client, only the newest is kept
	// OnError is called with the error of a store that does not take the message. It must not wait,
	// for other messages do meanwhile, and it may be called after the socket has ended. nil:
	// BroadcastEphemeral waits for the store, and returns its error.
	OnError func(error)

	recipientsText string // Recipients as they were received
	senderID       string // connection id
	isBinary       bool
	sentAt         time.Time
	frame          frame // as it is sent to text clients; nil: not encoded yet
	body           bodyForBinary
	seq            uint64 // ascending per sender, so that a message that was published twice is delivered once
}

// appendPayload appends the message as a channel payload.
func (m *EphemeralMessage) appendPayload(b []byte) []byte {
	b = append(b, ephemeralPrefix...)
	b = append(b, m.senderID...)
	b = strconv.AppendUint(append(b, '.'), m.seq, 10)
	switch {
	case m.isBinary:
		b = append(b, "."+markBinary...)
		if m.Latest {
			b = append(b, markLatest...)
		}
		b = append(append(b, '.'), m.Op...)
		b = strconv.AppendInt(append(b, '.'), m.SenderUserID, 10)
		b = strconv.AppendInt(append(b, '.'), m.sentAt.UnixMilli(), 10)
	case m.Latest:
		b = append(b, "."+markLatest+"."...)
		b = append(b, url.QueryEscape(m.Op)...)
	}
	b = append(b, '|')
	if m.ExceptUserID != 0 && len(m.Recipients) > 0 {
		b = append(strconv.AppendInt(b, -m.ExceptUserID, 10), ',')
	}
	for i, user := range m.Recipients {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, user, 10)
	}
	b = append(b, '|')
	if m.isBinary {
		return append(b, m.Bytes...)
	}
	return append(b, m.Text...)
}

// parseEphemeral parses a payload that begins with ephemeralPrefix, all of it but the recipients.
// The frame of a text is made in frames.
func parseEphemeral(payload string, frames *frameMemory) (m EphemeralMessage, ok bool) {
	header, rest, ok1 := strings.Cut(strings.TrimPrefix(payload, ephemeralPrefix), "|")
	recipients, body, ok2 := strings.Cut(rest, "|")
	sender, number, ok3 := strings.Cut(header, ".")
	if !ok1 || !ok2 || !ok3 {
		return m, false
	}
	number, marks, marked := strings.Cut(number, ".")
	if marked && !m.parseMarks(marks) {
		return m, false
	}
	var err error
	if m.seq, err = strconv.ParseUint(number, 10, 64); err != nil {
		return m, false
	}
	if except, others, ok := strings.Cut(recipients, ","); ok && strings.HasPrefix(except, "-") {
		if m.ExceptUserID, err = strconv.ParseInt(except[1:], 10, 64); err != nil {
			return m, false
		}
		recipients = others
	}
	m.senderID, m.recipientsText = sender, recipients
	if m.isBinary {
		m.Bytes = []byte(body)
	} else {
		m.frame = frames.addText(body)
	}
	return m, true
}

// parseMarks parses what stands behind the number of a message.
func (m *EphemeralMessage) parseMarks(text string) (ok bool) {
	marks, rest, _ := strings.Cut(text, ".")
	m.isBinary, m.Latest = strings.HasPrefix(marks, markBinary), strings.HasSuffix(marks, markLatest)
	var err error
	switch marks {
	case markLatest:
		m.Op, err = url.QueryUnescape(rest)
		return err == nil
	case markBinary, markBinary + markLatest:
		parts := strings.Split(rest, ".")
		if len(parts) != 3 {
			return false
		}
		op, ok := parseOp(parts[0])
		m.Op = strconv.Itoa(int(op))
		if m.SenderUserID, err = strconv.ParseInt(parts[1], 10, 64); err != nil || !ok {
			return false
		}
		m.sentAt, err = parseSentAt(parts[2])
		return err == nil
	default:
		return false
	}
}

// parseRecipients returns user ids in ascending order.
func parseRecipients(text string) (users []int64, ok bool) {
	if text == "" {
		return nil, true
	}
	users = make([]int64, 0, 1+strings.Count(text, ","))
	for one := range strings.SplitSeq(text, ",") {
		user, err := strconv.ParseInt(one, 10, 64)
		if err != nil {
			return nil, false
		}
		users = append(users, user)
	}
	if !slices.IsSorted(users) {
		slices.Sort(users)
	}
	return users, true
}

// isFor reports whether a client is among the recipients.
func (m *EphemeralMessage) isFor(c *Client) bool {
	if c.id == m.senderID {
		return false
	}
	user := c.options.UserID
	if len(m.Recipients) == 0 {
		return true
	}
	_, listed := slices.BinarySearch(m.Recipients, user)
	return listed && user != m.ExceptUserID
}

func isEphemeral(payload string) bool { return strings.HasPrefix(payload, ephemeralPrefix) }

// BroadcastEphemeral sends a message to the other clients of a topic on every node. It is not
// stored and arrives at most once. Messages of one sender to one topic keep their order; a message
// that arrives after a later one, which happens when a Cluster moves the topic, is dropped. The
// publish shares a round trip with commands that other goroutines send at the same moment. With
// EphemeralMessage.OnError it does not wait for the store, unless maxPublishing messages of the
// sender do: it waits then, and returns the error. After an error that it returns, OnError is not
// called.
func (h *Hub) BroadcastEphemeral(ctx context.Context, topic string, from *Client, m EphemeralMessage) error {
	m.senderID, m.seq = from.id, from.ephemeralSeq.Add(1)
	m.isBinary, m.sentAt = m.Text == nil, time.Now()
	p := newPublication()
	p.Channel, p.Message = topic, m.appendPayload(p.Message[:0])
	p.client, p.onError = from, m.OnError
	if m.OnError == nil || from.publishing.Load() >= maxPublishing {
		p.onError = nil
		return h.publishAndWait(ctx, p)
	}
	return h.publish(ctx, p)
}

// publish publishes a message of a client.
func (h *Hub) publish(ctx context.Context, p *publication) error {
	from := p.client
	from.publishing.Add(1)
	err := h.db.Publish(ctx, &p.Publication)
	if err != nil {
		from.publishing.Add(-1)
	}
	return redisdb.WrapError("publish", err)
}

// publishAndWait publishes a message and waits for the store to take it.
func (h *Hub) publishAndWait(ctx context.Context, p *publication) error {
	if err := h.publish(ctx, p); err != nil {
		return err
	}
	select {
	case err := <-p.result:
		if err == nil {
			p.release()
		}
		return redisdb.WrapError("publish", err)
	case <-ctx.Done(): // it may still be sent, so its memory is not used again
		return redisdb.WrapError("publish", ctx.Err())
	}
}

// maxPublishing bounds the messages of one client that are on their way to the store. The next one
// waits, so a client cannot fill the queue of a store that hangs.
const maxPublishing = 8

// publication is a message of a client on its way to the store. Its memory is reused, because it
// would be most of the memory that a message allocates before it reaches the store.
type publication struct {
	redisdb.Publication
	client  *Client
	onError func(error) // nil: the error goes to result
	result  chan error
}

var publications sync.Pool

func newPublication() *publication {
	if p, ok := publications.Get().(*publication); ok {
		return p
	}
	p := &publication{result: make(chan error, 1)}
	p.Done = p.done
	return p
}

// done is called when the store has accepted the message or failed to. The socket may have closed
// before, because closing does not wait for a store that hangs.
func (p *publication) done(err error) {
	from := p.client
	from.publishing.Add(-1)
	switch {
	case p.onError == nil:
		p.result <- err
	case err != nil:
		from.callHandler(func() { p.onError(redisdb.WrapError("publish", err)) })
	default:
		p.release()
	}
}

// maxKeptMessageBytes bounds the memory that a publication keeps: most messages are small.
const maxKeptMessageBytes = 4 << 10

// release allows the memory to be used again.
func (p *publication) release() {
	p.client, p.onError = nil, nil
	if cap(p.Message) <= maxKeptMessageBytes {
		publications.Put(p)
	}
}

// ephemeralBatch is what a worker has queued at clients and not written yet.
type ephemeralBatch struct {
	clients []*Client   // to be flushed
	frames  frameMemory // of the messages
	shared  bool        // another worker flushes a client that has one of the frames
}

// flush writes the queued frames. If none is left, it reuses the memory of the frames, because a
// frame would be the largest allocation in the delivery of a message.
func (b *ephemeralBatch) flush() {
	allWritten := !b.shared
	for i, c := range b.clients {
		allWritten = c.flushEphemeral() && allWritten
		b.clients[i] = nil
	}
	b.clients, b.shared = b.clients[:0], false
	if allWritten {
		b.frames.reuse()
	} else {
		b.frames = frameMemory{}
	}
}

// deliverEphemeral queues a message at the clients that it is for. It drops a message that was
// published twice, which happens when the reply to the first publish was lost.
func (t *topic) deliverEphemeral(m EphemeralMessage, batch *ephemeralBatch) {
	t.mu.Lock()
	if t.lastEphemeralSeqs == nil || len(t.lastEphemeralSeqs) > 1024 {
		t.lastEphemeralSeqs = map[string]uint64{}
	}
	last, known := t.lastEphemeralSeqs[m.senderID]
	if last >= m.seq || !t.resolveRecipients(&m) {
		t.mu.Unlock()
		return
	}
	if !known {
		m.senderID = strings.Clone(m.senderID) // it is a part of the whole payload
	}
	t.lastEphemeralSeqs[m.senderID] = m.seq
	cursors := t.listCursorsLocked()
	t.mu.Unlock()
	for _, cur := range cursors {
		if m.isFor(cur.client) {
			cur.client.enqueueEphemeral(cur, &m, batch)
		}
	}
}

// keptRecipientsBytes is from how many bytes on the text of a list of recipients is not parsed
// again when the next message has the same. Most messages of a room are for all of its players.
const keptRecipientsBytes = 32

// resolveRecipients parses the recipients of a message. topic.mu must be held.
func (t *topic) resolveRecipients(m *EphemeralMessage) (ok bool) {
	if len(m.recipientsText) >= keptRecipientsBytes && m.recipientsText == t.recipientsText {
		m.Recipients = t.recipients
		return true
	}
	if m.Recipients, ok = parseRecipients(m.recipientsText); ok && len(m.recipientsText) >= keptRecipientsBytes {
		t.recipientsText, t.recipients = strings.Clone(m.recipientsText), m.Recipients
	}
	return ok
}
