package calls

import (
	"strconv"
	"strings"
	"time"
)

// The messages between nodes. A node that does not know a form drops the message.
//
//	c|<call>|<connection>|<channel of the caller's node>|<caller>|<number>|<timeout in ms>|<event>
//	a|<call>|<outcome>|<code>|<payload, or detail>
const (
	callMark   = "c"
	answerMark = "a"
)

// question is a call on its way to a server.
type question struct {
	callID       string
	connectionID string
	channel      string // of the caller's node
	callerID     string
	number       uint64 // ascending for each caller
	timeout      time.Duration
	event        string // for the server
}

func (q *question) encode() []byte {
	b := make([]byte, 0, 160+len(q.event))
	for _, text := range []string{callMark, q.callID, q.connectionID, q.channel, q.callerID} {
		b = append(append(b, text...), '|')
	}
	b = append(strconv.AppendUint(b, q.number, 10), '|')
	b = append(strconv.AppendInt(b, q.timeout.Milliseconds(), 10), '|')
	return append(b, q.event...)
}

func parseQuestion(text string) (q question, ok bool) {
	values := strings.SplitN(text, "|", 7)
	if len(values) != 7 {
		return q, false
	}
	q = question{
		callID: values[0], connectionID: values[1], channel: values[2], callerID: values[3], event: values[6],
	}
	var err error
	if q.number, err = strconv.ParseUint(values[4], 10, 64); err != nil {
		return q, false
	}
	timeoutMS, err := strconv.ParseInt(values[5], 10, 32)
	q.timeout = time.Duration(timeoutMS) * time.Millisecond
	return q, err == nil && q.timeout > 0
}

// end is how a call ends.
type end struct {
	outcome outcome
	code    string // of gameError
	text    string // the payload as JSON, or the detail of gameError
}

func (e *end) encode(callID string) []byte {
	return []byte(strings.Join([]string{answerMark, callID, string(e.outcome), e.code, e.text}, "|"))
}

func parseEnd(text string) (callID string, e end, ok bool) {
	values := strings.SplitN(text, "|", 4)
	if len(values) != 4 {
		return "", e, false
	}
	return values[0], end{outcome(values[1]), values[2], values[3]}, true
}
