package migrate

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/redis/go-redis/v9"
)

// convertIdentity spells the digest of an identity as today, and names the identity in the player's
// record, where today's nodes look for those to delete.
func (p *passState) convertIdentity(k oldKey, owner string) ([]record, error) {
	userID, err := strconv.ParseInt(owner, 10, 64)
	if err != nil {
		return nil, errors.New("the identity has no player")
	}
	kind, hexDigest, _ := strings.Cut(k.Text, ":")
	sum, err := hex.DecodeString(hexDigest)
	if err != nil {
		return nil, errors.New("the identity has no digest")
	}
	digest := base64.RawURLEncoding.EncodeToString(sum)
	return []record{
		{key: keys.Identity(k.ID, kind, digest), kind: kindString, values: []string{owner}},
		fieldRecord(keys.User(userID), keys.UserIdentityField(kind, digest), "1"),
	}, nil
}

// convertPair lists two players in the indexes that each has today. The pair itself stays.
func (p *passState) convertPair(k oldKey, pair map[string]string) []record {
	p.isFirst(k, countFriends)
	var records []record
	for _, of := range [][2]int64{{k.ID, k.Other}, {k.Other, k.ID}} {
		user := of[0]
		self, other := strconv.FormatInt(user, 10), strconv.FormatInt(of[1], 10)
		switch relation := pair["rel"]; {
		case pair["block:"+self] != "":
			records = append(records, memberRecord(keys.BlockedPlayers(user), other, other))
		case relation == "friends" || relation == self:
			records = append(records, memberRecord(keys.Friends(user), other, other))
		case relation == other:
			records = append(records, memberRecord(keys.FriendRequests(user), pair["since"], other))
		}
	}
	return records
}

// convertRefresh adds the fields of today's families. The start of a family is unknown, so it gets
// that of its player; ending the player's sessions then ends it too.
func (p *passState) convertRefresh(k oldKey, raw rawKey) []record {
	p.isFirst(k, countSessions)
	if raw.expiresAtMS <= 0 {
		return nil
	}
	expires := strconv.FormatInt(raw.expiresAtMS, 10)
	return []record{
		{
			key: keys.RefreshFamily(k.ID, k.Text), kind: kindHash,
			values:      []string{"by", "", "start", strconv.FormatInt(p.created[k.ID], 10)},
			expiresAtMS: raw.expiresAtMS, // also of one that has expired since it was read
		},
		memberRecord(keys.RefreshFamilies(k.ID), expires, k.Text),
	}
}

// convertSaves adds how many bytes the versions of all slots have. The saves themselves stay.
func (p *passState) convertSaves(ctx context.Context, k oldKey, slots map[string]string) ([]record, error) {
	p.isFirst(k, countSaves)
	client := p.store.db.Client
	bytes := int64(0)
	for slot := range slots {
		if slot == keys.SavesBytesField {
			continue
		}
		name := keys.Save(k.ID, k.Other, slot)
		fields, err := client.HKeys(ctx, name).Result()
		if err != nil {
			return nil, redisdb.WrapError("read a save", err)
		}
		sizes := make([]*redis.Cmd, 0, len(fields))
		fields = slices.DeleteFunc(fields, func(field string) bool {
			_, err := strconv.ParseInt(field, 10, 64)
			return err != nil
		})
		_, err = client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
			for _, field := range fields {
				sizes = append(sizes, pipe.Do(ctx, "HSTRLEN", name, field))
			}
			return nil
		})
		if err != nil {
			return nil, redisdb.WrapError("read the size of a save", err)
		}
		for _, size := range sizes {
			n, _ := size.Int64()
			bytes += n
		}
	}
	return []record{fieldRecord(keys.Saves(k.ID, k.Other), keys.SavesBytesField, strconv.FormatInt(bytes, 10))}, nil
}
