/** Accounts with a CA (RFC 8555 §7.3): made, found, changed, given another key, and ended. */
import { z } from 'zod';
import type { Secret } from '../base/secret.ts';
import { type AcmeAnswer, jsonIn, locationOf } from './acme-answer.ts';
import type { AcmeClient } from './acme-client.ts';
import { AcmeError } from './acme-error.ts';
import type { AcmeAccount, ExternalAccount } from './acme-types.ts';
import { externalAccountBinding, keyChange } from './signed-request.ts';

export type NewAccount = {
  /** PKCS#8: P-256, P-384 or RSA. */
  readonly privateKey: Secret;
  /** Where the CA may write to; without it, it has no contact. */
  readonly email: string | undefined;
  /** The CA's own name for its customer, and the HMAC key's bytes, decoded (§7.3.4). */
  readonly externalAccount: ExternalAccount | undefined;
  /** Whether a person has agreed to the directory's terms of service. */
  readonly termsAgreed: boolean;
};

/** `status` is `valid`, `deactivated` or `revoked` (§7.1.6). */
export type AcmeAccountState = AcmeAccount & { readonly status: string };

const schema = z.object({ status: z.string().max(100) });

/**
 * Registers the key, or finds the account that has it already (§7.3.1): it may be repeated after a crash. Throws AcmeError,
 * such as `userActionRequired`, `externalAccountRequired` or `unsupportedContact`.
 */
export async function registerAccount(
  client: AcmeClient,
  { privateKey, email, externalAccount, termsAgreed }: NewAccount,
  signal: AbortSignal,
): Promise<AcmeAccountState> {
  const { newAccount: url } = await client.directory(signal);
  const payload = {
    ...contactOf(email),
    ...(termsAgreed && { termsOfServiceAgreed: true }),
    ...(externalAccount !== undefined && {
      externalAccountBinding: await externalAccountBinding(url, privateKey, externalAccount),
    }),
  };
  return readAccount(await client.post(url, payload, { privateKey }, signal), privateKey);
}

/** The account of the key, or undefined where the CA has none (§7.3.1, onlyReturnExisting). Throws AcmeError. */
export async function findAccount(
  client: AcmeClient,
  privateKey: Secret,
  signal: AbortSignal,
): Promise<AcmeAccountState | undefined> {
  const { newAccount: url } = await client.directory(signal);
  try {
    const answer = await client.post(url, { onlyReturnExisting: true }, { privateKey }, signal);
    return readAccount(answer, privateKey);
  } catch (error) {
    if (error instanceof AcmeError && error.type === 'accountDoesNotExist') return undefined;
    throw error;
  }
}

/** Gives the account this contact, or none (§7.3.2). Throws AcmeError. */
export async function updateContact(
  client: AcmeClient,
  account: AcmeAccount,
  email: string | undefined,
  signal: AbortSignal,
): Promise<void> {
  await client.post(account.url, { contact: [], ...contactOf(email) }, account, signal);
}

/**
 * Gives the account another key (§7.3.5). Keep both until it returns: after a crash it may be repeated with the same new
 * key, and succeeds also where the CA has made the change before. Throws AcmeError.
 */
export async function rolloverKey(
  client: AcmeClient,
  account: AcmeAccount,
  newKey: Secret,
  signal: AbortSignal,
): Promise<AcmeAccount> {
  const { keyChange: url } = await client.directory(signal);
  if (url === undefined) throw new AcmeError('protocol', 'the CA does not support account key rollover');
  try {
    await client.post(url, await keyChange(url, account, newKey), account, signal);
  } catch (error) {
    // After the change the CA no longer knows the old key; how it says so differs.
    if (!(error instanceof AcmeError) || error.kind !== 'problem') throw error;
    if (!(await hasKey(client, account, newKey, signal))) throw error;
  }
  return { privateKey: newKey, url: account.url };
}

/** Ends the account for ever (§7.3.6); its certificates stay valid. Throws AcmeError. */
export async function deactivateAccount(
  client: AcmeClient,
  account: AcmeAccount,
  signal: AbortSignal,
): Promise<void> {
  await client.post(account.url, { status: 'deactivated' }, account, signal);
}

async function hasKey(
  client: AcmeClient,
  account: AcmeAccount,
  key: Secret,
  signal: AbortSignal,
): Promise<boolean> {
  try {
    const found = await findAccount(client, key, signal);
    return found?.url === account.url;
  } catch (error) {
    // The refusal of the change tells more than that of this question.
    if (error instanceof AcmeError && error.kind === 'problem') return false;
    throw error;
  }
}

function contactOf(email: string | undefined): { readonly contact?: readonly string[] } {
  return email === undefined ? {} : { contact: [`mailto:${email}`] };
}

function readAccount(answer: AcmeAnswer, privateKey: Secret): AcmeAccountState {
  const { status } = jsonIn(answer, 'an account', schema);
  return { privateKey, url: locationOf(answer, 'an account'), status };
}
