-- lib_feed: stands first in the second text of a script, for rooms and tournaments of a game that
-- has a feed (Script.WithFeed): the last two KEYS are the head of the feed and the feed.
local feed_head_key, feed_key = KEYS[#KEYS - 1], KEYS[#KEYS]
KEYS[#KEYS] = nil
KEYS[#KEYS] = nil

-- append_to_feed appends an event to the feed and publishes it, as
-- "<number>-<nonce>|<type>|<ms>|<room or tournament>|<seq>|<values>". An event of a room whose id
-- says that it does not feed, or a turn, is left out. A broken feed stops no room: its readers
-- notice.
local function append_to_feed(publish, events_key, event)
  local id = string.match(events_key, ':([^:]+):events$')
  local digit = string.sub(id, 23, 23)
  if digit ~= '' and not string.find('13579bdf', digit, 1, true) then return end
  local seq, nonce, head, values = string.match(event, '^(%d+)(%-%w+)(|[^|]+|%d+|)(.*)$')
  if string.sub(head, 1, 11) == '|room.turn|' then return end
  local number = redis.pcall('HINCRBY', feed_head_key, 'seq', '1')
  if not tonumber(number) then return end
  local entry = string.format('%d', number) .. nonce .. head .. id .. '|' .. seq .. '|' .. values
  if number == 1 then redis.call('HSET', feed_head_key, 'since', string.match(head, '%d+')) end
  local length = redis.pcall('RPUSH', feed_key, entry)
  if not tonumber(length) then return end
  if length >= 5120 and length % 1024 == 0 then
    -- The newest 4,096 stay, and what some webhook has not delivered, up to 100,000 with the next
    -- 1,024.
    local kept = redis.call('HGET', feed_head_key, 'kept')
    local wanted = kept and number - kept or 0
    redis.call('LTRIM', feed_key, string.format('%d', -math.min(math.max(wanted, 4096), 98976)), '-1')
  end
  redis.call(publish, feed_key, entry)
end
