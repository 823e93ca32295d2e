-- lib_feed: stands first in the second text of a script, for rooms and tournaments that feed the
-- server of their game (Script.WithFeed). The last two KEYS are the head of the feed and the feed.
local feed_place = #KEYS
local feed_head_key, feed_key = KEYS[feed_place - 1], KEYS[feed_place]
KEYS[feed_place - 1], KEYS[feed_place] = nil, nil
local fed_seq, fed_nonce, fed_type, fed_now, fed_values -- of the event that was formatted last

-- append_to_feed appends the event that was formatted last and publishes it, as
-- "<number>-<nonce>|<type>|<ms>|<room or tournament>|<seq>|<values>". Turns are left out, and
-- events of a room whose id says that it does not feed. A broken feed stops no room: its readers
-- notice.
local function append_to_feed(publish, events_key)
  if fed_type == 'room.turn' then return end
  local id = string.sub(events_key, -43, -8)
  if string.sub(id, 1, 1) == '{' then
    id = string.match(id, '%d+$') -- of a tournament, whose key is shorter
  else
    local digit = string.byte(id, 23) -- odd in rooms that feed: 1, 3, 5, 7, 9, b, d, f
    if (digit % 2 == 1) == (digit > 57) then return end
  end
  local number = redis.pcall('HINCRBY', feed_head_key, 'seq', '1')
  if not tonumber(number) then return end
  local entry = string.format('%d', number) .. '-' .. fed_nonce .. '|' .. fed_type .. '|' .. fed_now .. '|' ..
    id .. '|' .. fed_seq .. '|' .. fed_values
  if number == 1 then
    redis.call('DEL', feed_key) -- of a head that is lost: no reader finds its place among two counts
    redis.call('HSET', feed_head_key, 'since', fed_now)
  end
  local length = redis.pcall('RPUSH', feed_key, entry)
  if not tonumber(length) then return end
  if length >= 5120 and length % 1024 == 0 then
    -- The newest 4,096 stay, and what waits for a webhook, up to 100,000 with the next
    -- 1,024. The one it delivered last stays too: who resumes behind an entry must find it.
    local kept = redis.call('HGET', feed_head_key, 'kept')
    local wanted = kept and number - kept + 1 or 0
    redis.call('LTRIM', feed_key, string.format('%d', -math.min(math.max(wanted, 4096), 98976)), '-1')
  end
  redis.call(publish, feed_key, entry)
end
