-- webhook_define: stores the definition of a webhook or removes it, or changes nothing.
-- KEYS      1 webhooks
-- ARGV      1 webhook_id  2 was: the definition that was read, '' for a new one  3 definition: ''
--           removes it  4 most: most webhooks of a game
-- RETURNS   ok stale limit_reached
-- INVARIANT a definition replaces the one that was read, and a resend of the same call is ok; a
--           game has at most so many
local stored = redis.call('HGET', webhooks_key, webhook_id) or ''
if stored == definition then return 'ok' end
if stored ~= was then return 'stale' end
if definition == '' then
  redis.call('HDEL', webhooks_key, webhook_id)
  return 'ok'
end
if was == '' and redis.call('HLEN', webhooks_key) >= tonumber(most) then return 'limit_reached' end
redis.call('HSET', webhooks_key, webhook_id, definition)
return 'ok'
