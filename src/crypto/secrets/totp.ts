/**
 * Codes of authenticator apps (TOTP, RFC 6238, on HOTP, RFC 4226) with the parameters that every app supports: SHA-1,
 * six digits, steps of 30 seconds.
 */
import { createHmac } from 'node:crypto';
import type { Secret } from '../../base/secret.ts';
import type { World } from '../../base/world.ts';
import { sameBytes } from './constant-time.ts';

/** In bytes, as RFC 4226 §4 recommends. */
export const totpSecretSize = 20;

const stepMs = 30_000;

const digits = 6;

/** Steps before and after the current one whose codes are accepted, because clocks differ (RFC 6238 §5.2). */
const tolerance = 1;

/** The number of the time step at `now` (UTC milliseconds). */
export function totpStep(now: number): number {
  return Math.floor(now / stepMs);
}

/** The code of a step, with as many digits. */
export function totpCode(secret: Secret, step: number, length: number = digits): string {
  const counter = Buffer.alloc(8);
  counter.writeBigUInt64BE(BigInt(step));
  const mac = createHmac('sha1', secret.expose()).update(counter).digest();
  // Dynamic truncation (RFC 4226 §5.3): the last four bits say where the number begins.
  const number = mac.readUInt32BE((mac.at(-1) ?? 0) & 0xf) & 0x7fff_ffff;
  return String(number % 10 ** length).padStart(length, '0');
}

/** The step around `now` to which the code belongs, the newest if several have it; undefined if none does. */
export function totpStepOf(secret: Secret, code: string, now: number): number | undefined {
  const presented = Buffer.from(code);
  let found: number | undefined;
  for (let step = totpStep(now) - tolerance; step <= totpStep(now) + tolerance; step += 1) {
    // All of them, so that the time reveals nothing.
    if (step >= 0 && sameBytes(presented, Buffer.from(totpCode(secret, step)))) found = step;
  }
  return found;
}

const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567';

/** Base32 without padding (RFC 4648 §6). */
export function base32(bytes: Buffer): string {
  const bits = [...bytes].map((byte) => byte.toString(2).padStart(8, '0')).join('');
  return (bits.match(/.{1,5}/g) ?? [])
    .map((group) => alphabet[Number.parseInt(group.padEnd(5, '0'), 2)])
    .join('');
}

/** What an app reads from a QR code. `account` and `issuer` are names for people. */
export function totpUri(
  secret: Secret,
  { issuer, account }: { readonly issuer: string; readonly account: string },
): string {
  const label = `${encodeURIComponent(issuer)}:${encodeURIComponent(account)}`;
  const parameters = `secret=${base32(secret.expose())}&issuer=${encodeURIComponent(issuer)}`;
  return `otpauth://totp/${label}?${parameters}`;
}

/** Random bits of a recovery code: 16 characters. */
const recoveryCodeSize = 10;

/** A new recovery code as people see it: `abcd-efgh-ijkl-mnop`. */
export function createRecoveryCode(world: World): string {
  const text = base32(world.randomBytes(recoveryCodeSize)).toLowerCase();
  return (text.match(/.{4}/g) ?? []).join('-');
}

/** The characters of a typed recovery code, without what people add; undefined if it cannot be one. */
export function recoveryCodeIn(typed: string): string | undefined {
  const text = typed.replaceAll(/[\s-]/g, '').toLowerCase();
  return /^[a-z2-7]{16}$/.test(text) ? text : undefined;
}
