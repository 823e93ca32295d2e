package main

import (
	"crypto/sha1"
	"encoding/hex"
	"strconv"
)

// floorSource is the least that a change with an event can be: two reads, two writes, an entry and
// a message, with nothing checked. The ratios of the times are to its time.
const floorSource = `
redis.call('HGET', KEYS[1], 'a')
redis.call('HGET', KEYS[2], 'a')
redis.call('HSET', KEYS[1], 'a', ARGV[1])
redis.call('HSET', KEYS[2], 'a', ARGV[1])
redis.call('RPUSH', KEYS[3], ARGV[1])
redis.call('PUBLISH', KEYS[3], ARGV[1])
return 'ok'`

// floorCommands returns n calls of the floor script. Their keys are those of as many places by
// turns as the calls of a row have rooms, so that the processor's caches help both alike.
func floorCommands(n int) [][]any {
	sum := sha1.Sum([]byte(floorSource))
	sha := hex.EncodeToString(sum[:])
	commands := make([][]any, n)
	for i := range commands {
		place := "{floor}:" + strconv.Itoa(i%timedCalls)
		commands[i] = []any{"evalsha", sha, 3, place + ":a", place + ":b", place + ":c", "1763800000000|1000000|250"}
	}
	return commands
}
