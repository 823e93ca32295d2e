package main

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/gorilla/websocket"
)

// saver saves progress over several connections in turn, so that none exceeds 60 messages a second.
type saver struct {
	conns     []*websocket.Conn
	slots     []string
	versions  []int
	stateJSON string
}

// socketsPerPlayer is less than a player may open on a node.
const socketsPerPlayer = 4

func (b *bench) openSaver(players []player) (*saver, error) {
	s := &saver{stateJSON: `{"level":7,"inventory":"` + strings.Repeat("abcdefgh", 120) + `"}`}
	for _, p := range players {
		for slot := range socketsPerPlayer {
			header := http.Header{"Authorization": {"Bearer " + p.accessToken}}
			conn, _, err := websocket.DefaultDialer.Dial("ws://"+b.nodeAddress+"/api/v1/game-data/save", header)
			if err != nil {
				return nil, fmt.Errorf("open a socket for saves: %w", err)
			}
			s.conns = append(s.conns, conn)
			s.slots = append(s.slots, fmt.Sprintf("slot-%d", slot))
			s.versions = append(s.versions, 0)
		}
	}
	return s, nil
}

// save stores the next version of one slot.
func (s *saver) save(turn int) error {
	i := turn % len(s.conns)
	message := fmt.Sprintf(`{"id":"%d-%d","type":"save","data":{"slot":"%s","version":%d,"state":%s}}`,
		i, s.versions[i]+1, s.slots[i], s.versions[i], s.stateJSON)
	if err := s.conns[i].WriteMessage(websocket.TextMessage, []byte(message)); err != nil {
		return errors.Join(errExhausted, err)
	}
	_, reply, err := s.conns[i].ReadMessage()
	if err != nil {
		return errors.Join(errExhausted, err)
	}
	if !strings.Contains(string(reply), `"ok":true`) {
		return fmt.Errorf("a save returns %s", reply)
	}
	s.versions[i]++
	return nil
}
