package main

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/parlor-games/parlor/internal/redisdb"
	"github.com/parlor-games/parlor/scripts"
	"github.com/redis/go-redis/v9"
)

const (
	baselineKey  = "{bench}:baseline"
	baselinePath = "/baseline"
)

const floorPath = "/floor"

// floorScript is the least that a change with an event can be: two reads, two writes, an entry and
// a message, with nothing checked. The ratios of the store's table are to its cost.
var floorScript = &scripts.Script{Header: scripts.Header{Name: "floor"}, Source: `
redis.call('HGET', KEYS[1], 'a')
redis.call('HGET', KEYS[2], 'a')
redis.call('HSET', KEYS[1], 'a', ARGV[1])
redis.call('HSET', KEYS[2], 'a', ARGV[1])
redis.call('RPUSH', KEYS[3], ARGV[1])
redis.call('PUBLISH', KEYS[3], ARGV[1])
return {'ok'}`}

// serveBaseline serves what the ratios are to: a gin handler that makes one Redis round trip with
// go-redis and writes one small JSON object; and one that runs the floor script as a node runs its
// scripts.
func serveBaseline(addr, store string) {
	gin.SetMode(gin.ReleaseMode)
	client := redis.NewClient(&redis.Options{Network: "unix", Addr: strings.TrimPrefix(store, "unix://")})
	_ = client.HSet(context.Background(), baselineKey, "a", "1", "b", "2").Err() // without it every response is {}
	engine := gin.New()
	engine.GET(baselinePath, func(c *gin.Context) {
		fields, err := client.HGetAll(c.Request.Context(), baselineKey).Result()
		if err != nil {
			c.Status(http.StatusServiceUnavailable)
			return
		}
		c.JSON(http.StatusOK, fields)
	})
	sum := sha1.Sum([]byte(floorScript.Source))
	floorScript.SHA = hex.EncodeToString(sum[:])
	db, err := redisdb.Open(store)
	if err != nil {
		os.Exit(1)
	}
	engine.POST(floorPath, func(c *gin.Context) {
		worker := c.Query("worker")
		names := []string{"{bench}:a:" + worker, "{bench}:b:" + worker, "{bench}:c:" + worker}
		if _, err := db.RunScript(c.Request.Context(), floorScript, names, "1763800000000|1000000|250"); err != nil {
			c.Status(http.StatusServiceUnavailable)
			return
		}
		c.JSON(http.StatusOK, struct{}{})
	})
	server := &http.Server{Addr: addr, Handler: engine, ReadHeaderTimeout: 5 * time.Second}
	if err := server.ListenAndServe(); err != nil {
		os.Exit(1)
	}
}
