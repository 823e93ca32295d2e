package redisdb

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"
)

// Master is one server that holds a part of the store.
type Master struct {
	Addr string
	// Slots are those of a Cluster's master, "0-5460" or "0-99,200-299"; "" elsewhere.
	Slots string
	// Dial opens a connection that is signed in, for what go-redis has no command for.
	Dial func(ctx context.Context) (net.Conn, error)
}

// Masters returns the servers that hold the store, in the order of their slots. It returns
// store_unavailable when a Cluster cannot be reached.
func (db *DB) Masters(ctx context.Context) ([]Master, error) {
	if client, ok := db.Client.(*redis.Client); ok {
		return []Master{newMaster(client, "")}, nil
	}
	cluster, ok := db.Client.(*redis.ClusterClient)
	if !ok {
		return nil, errors.New("a store of this kind has no masters")
	}
	//lint:ignore SA1019 go-redis finds masters by CLUSTER SLOTS: the addresses must be the same
	ranges, err := cluster.ClusterSlots(ctx).Result()
	if err != nil {
		return nil, WrapError("read the slots", err)
	}
	slices.SortFunc(ranges, func(a, b redis.ClusterSlot) int { return a.Start - b.Start })
	slots := map[string][]string{}
	for _, r := range ranges {
		if len(r.Nodes) > 0 {
			addr := r.Nodes[0].Addr
			slots[addr] = append(slots[addr], strconv.Itoa(r.Start)+"-"+strconv.Itoa(r.End))
		}
	}
	var mu sync.Mutex
	var masters []Master
	err = cluster.ForEachMaster(ctx, func(_ context.Context, client *redis.Client) error {
		mu.Lock()
		defer mu.Unlock()
		masters = append(masters, newMaster(client, strings.Join(slots[client.Options().Addr], ",")))
		return nil
	})
	slices.SortFunc(masters, func(a, b Master) int { return firstSlot(a.Slots) - firstSlot(b.Slots) })
	return masters, WrapError("find the masters", err)
}

func firstSlot(slots string) int {
	first, _, _ := strings.Cut(slots, "-")
	n, _ := strconv.Atoi(first)
	return n
}

func newMaster(client *redis.Client, slots string) Master {
	o := client.Options()
	return Master{Addr: o.Addr, Slots: slots, Dial: func(ctx context.Context) (net.Conn, error) {
		conn, err := o.Dialer(ctx, o.Network, o.Addr)
		if err != nil {
			return nil, WrapError("connect to "+o.Addr, err)
		}
		user, password := credentialsFor(o)
		if err := signIn(conn, user, password); err != nil {
			_ = conn.Close()
			return nil, WrapError("sign in at "+o.Addr, err)
		}
		return conn, nil
	}}
}

// signIn sends AUTH and reads its reply, byte by byte: what follows is the caller's.
func signIn(conn net.Conn, user, password string) error {
	if password == "" {
		return nil
	}
	args := []string{"AUTH", password}
	if user != "" {
		args = []string{"AUTH", user, password}
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "*%d\r\n", len(args))
	for _, arg := range args {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(arg), arg)
	}
	if _, err := conn.Write(b.Bytes()); err != nil {
		return err
	}
	var reply []byte
	for one := make([]byte, 1); !bytes.HasSuffix(reply, []byte("\r\n")); {
		if _, err := io.ReadFull(conn, one); err != nil {
			return err
		}
		reply = append(reply, one[0])
	}
	if text := strings.TrimSpace(string(reply)); text != "+OK" {
		return errors.New(strings.TrimPrefix(text, "-"))
	}
	return nil
}
