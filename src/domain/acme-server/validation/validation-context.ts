/** What the validation of challenges works with: the DNS, the rules for addresses, and the settings of CAA. */
import type { ValidationResolver } from '../../../dns/resolver/dns-resolver.ts';
import type { OutboundGuard } from '../../../net/outbound-guard.ts';
import type { WorldContext } from '../../contexts.ts';

export type ValidationParts = {
  readonly resolver: ValidationResolver;
  /** Refuses addresses that no validation may reach. */
  readonly guard: OutboundGuard;
  /** 80 and 443, where RFC 8555 §8.3 and RFC 8737 §3 put them; tests have their own. */
  readonly ports: { readonly http: number; readonly tls: number };
  /** The names that CAA records use for this CA. CAA is not checked if there are none. */
  readonly caaIdentities: readonly string[];
  readonly userAgent: string;
};

export type ValidationContext = WorldContext & { readonly validation: ValidationParts };

/** A challenge that the client says it has prepared. */
export type ChallengeToValidate = {
  readonly type: string;
  /** The name or address. `*.` in front is only a question for CAA: the name behind it is validated. */
  readonly identifier: string;
  readonly token: string;
  /** RFC 8555 §8.1. */
  readonly keyAuthorization: string;
  /** The URL of the client's account, for CAA records that name accounts (RFC 8657 §3). */
  readonly accountUri: string;
};

/** The name that is validated. */
export function baseName(identifier: string): string {
  return identifier.startsWith('*.') ? identifier.slice(2) : identifier;
}
