-- user_unlink_identity: takes an identity from a player who has it, or changes nothing.
-- FLAGS     allow-oom
-- KEYS      1 identity  2 granted_identity
-- ARGV      1 user  2 granted_ms: for how long it is remembered that the player had the signup
--           grant, 0 when the player had none
-- RETURNS   ok
-- INVARIANT an identity of another player stays
if redis.call('GET', identity_key) == user then
  redis.call('DEL', identity_key)
  if granted_ms ~= '0' then redis.call('SET', granted_identity_key, '1', 'PX', granted_ms) end
end
return {'ok'}
