package main

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// socket is the client's end of a WebSocket that costs the client little CPU.
type socket struct {
	conn    net.Conn
	reader  *bufio.Reader
	room    int // index
	member  int // index in the room
	writeMu sync.Mutex
	sentAt  time.Time // of the last message that it sent
}

const handshakeLimit = 30 * time.Second

// openWebSocket upgrades a connection. headers are further lines of the request, each with its end.
func openWebSocket(address, path, headers string) (net.Conn, *bufio.Reader, error) {
	conn, err := net.DialTimeout("tcp", address, handshakeLimit)
	if err != nil {
		return nil, nil, err
	}
	_ = conn.SetDeadline(time.Now().Add(handshakeLimit))
	_, err = fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: bench\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"+
		"User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0 Safari/537.36\r\n"+
		"Accept-Language: en-GB,en;q=0.9\r\nCache-Control: no-cache\r\nPragma: no-cache\r\n%s\r\n", path, headers)
	reader := bufio.NewReaderSize(conn, 4096)
	var response *http.Response
	if err == nil {
		response, err = http.ReadResponse(reader, nil)
	}
	if err == nil && response.StatusCode != http.StatusSwitchingProtocols {
		err = fmt.Errorf("the upgrade returns %s", response.Status)
	}
	if err != nil {
		_ = conn.Close()
		return nil, nil, err
	}
	_ = conn.SetDeadline(time.Time{})
	return conn, reader, nil
}

// Opcodes of RFC 6455.
const (
	opText  = 1
	opClose = 8
	opPing  = 9
	opPong  = 10
)

// writeFrame writes a frame under a mask of zeros, which leaves the payload as it is.
func (s *socket) writeFrame(opcode byte, payload []byte) error {
	frame := make([]byte, 0, len(payload)+14)
	frame = append(frame, 0x80|opcode)
	switch n := len(payload); {
	case n < 126:
		frame = append(frame, 0x80|byte(n))
	default:
		frame = append(frame, 0x80|126, byte(n>>8), byte(n))
	}
	frame = append(append(frame, 0, 0, 0, 0), payload...)
	s.writeMu.Lock()
	defer s.writeMu.Unlock()
	_, err := s.conn.Write(frame)
	return err
}

// readFrame reads one frame into the buffer, which it returns longer if it must.
func (s *socket) readFrame(buffer []byte) (opcode byte, payload, grown []byte, err error) {
	var head [8]byte
	if _, err := io.ReadFull(s.reader, head[:2]); err != nil {
		return 0, nil, buffer, err
	}
	opcode, n := head[0]&0x0f, int(head[1]&0x7f)
	switch n {
	case 126:
		_, err = io.ReadFull(s.reader, head[:2])
		n = int(binary.BigEndian.Uint16(head[:2]))
	case 127:
		_, err = io.ReadFull(s.reader, head[:8])
		n = int(binary.BigEndian.Uint64(head[:8]))
	}
	if err != nil {
		return 0, nil, buffer, err
	}
	if n > len(buffer) {
		buffer = make([]byte, 2*n)
	}
	_, err = io.ReadFull(s.reader, buffer[:n])
	return opcode, buffer[:n], buffer, err
}

var frameBuffers = sync.Pool{New: func() any { b := make([]byte, 4<<10); return &b }}

// eachFrame calls handle for each text frame until the connection ends. Pings are returned.
func (s *socket) eachFrame(handle func(frame []byte) error) error {
	for {
		// An idle connection must not hold a buffer.
		if _, err := s.reader.Peek(1); err != nil {
			return err
		}
		buffer := frameBuffers.Get().(*[]byte)
		opcode, payload, grown, err := s.readFrame(*buffer)
		switch {
		case err != nil:
		case opcode == opText:
			err = handle(payload)
		case opcode == opPing:
			err = s.writeFrame(opPong, payload)
		case opcode == opClose:
			err = closedError(payload)
		}
		*buffer = grown
		frameBuffers.Put(buffer)
		if err != nil {
			return err
		}
	}
}

// closedError is the end of a connection by the server.
func closedError(payload []byte) error {
	if len(payload) < 2 {
		return errors.New("closed without a code")
	}
	return closeCode(binary.BigEndian.Uint16(payload))
}

type closeCode int

func (c closeCode) Error() string { return "closed with " + strconv.Itoa(int(c)) }

// ask sends a message and returns the reply, skipping everything else.
func (s *socket) ask(message string) (reply []byte, err error) {
	if err := s.writeFrame(opText, []byte(message)); err != nil {
		return nil, err
	}
	_ = s.conn.SetReadDeadline(time.Now().Add(handshakeLimit))
	done := errors.New("done")
	err = s.eachFrame(func(frame []byte) error {
		if !bytes.Contains(frame, []byte(`"replyTo"`)) {
			return nil
		}
		reply = bytes.Clone(frame)
		return done
	})
	_ = s.conn.SetReadDeadline(time.Time{})
	if !errors.Is(err, done) {
		return nil, err
	}
	if !bytes.Contains(reply, []byte(`"ok":true`)) {
		return nil, fmt.Errorf("a message returns %s", reply)
	}
	return reply, nil
}
