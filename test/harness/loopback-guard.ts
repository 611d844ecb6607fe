/** The outbound guard of tests, which also allows loopback, where their CAs, name servers and receivers are. */
import assert from 'node:assert/strict';
import { realWorld } from '../../src/base/world.ts';
import { parseAllowedOutbound } from '../../src/net/outbound-addresses.ts';
import { outboundGuard } from '../../src/net/outbound-guard.ts';
import { type Outbound, outboundHttp } from '../../src/net/outbound-http.ts';

/** The value of `--allow-outbound`. */
export const loopbackSetting = '127.0.0.0/8,::1';

export const loopbackAllowed = loopbackSetting.split(',').map((text) => {
  const allowed = parseAllowedOutbound(text);
  assert(allowed);
  return allowed;
});

export const loopbackGuard = outboundGuard(loopbackAllowed);

export const loopbackOutbound: Outbound = outboundHttp(realWorld, {}, 'vault-test', loopbackGuard);
