package main

import "time"

// relaySender sends messages of players to the others of their room, over their sockets.
type relaySender struct {
	rooms   []string
	sockets [][]*socket
	turns   []int // by room: whose turn it is
}

// sendInterval is a little more than a socket needs between its frames.
const sendInterval = time.Second / 50

func newRelaySender(w *world) *relaySender {
	return &relaySender{rooms: w.rooms, sockets: w.sockets, turns: make([]int, len(w.rooms))}
}

// send has the members of each room speak in turn, each below the limit of frames.
func (r *relaySender) send(batch []delivery) error {
	for _, d := range batch {
		members := r.sockets[d.room]
		s := members[r.turns[d.room]%len(members)]
		r.turns[d.room]++
		if wait := time.Until(s.sentAt.Add(sendInterval)); wait > 0 {
			<-time.After(wait)
		}
		s.sentAt = time.Now()
		message := []byte(`{"type":"room.send","data":{"roomId":"` + r.rooms[d.room] + `","op":"m","payload":`)
		message = append(message, d.payload...)
		if err := s.writeFrame(opText, append(message, "}}"...)); err != nil {
			return err
		}
	}
	return nil
}
