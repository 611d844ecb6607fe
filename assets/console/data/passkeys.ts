/** Passkeys of this browser: the WebAuthn API, which reads and writes JSON itself. */
import { ApiError, post } from './api.ts';
import type { Person } from './session.ts';

type Creation = {
  readonly pending: string;
  readonly options: PublicKeyCredentialCreationOptionsJSON;
};

/** Whether this browser can use passkeys at this address. */
export function canUsePasskeys(): boolean {
  return typeof PublicKeyCredential !== 'undefined' && 'parseRequestOptionsFromJSON' in PublicKeyCredential;
}

/** Creates a passkey and registers it under this name. Throws ApiError. */
export async function registerPasskey(name: string, password: string): Promise<void> {
  const { pending, options } = await post<Creation>('/second-factors/passkeys/options', { password });
  const publicKey = PublicKeyCredential.parseCreationOptionsFromJSON(options);
  const response = await ofBrowser(() => navigator.credentials.create({ publicKey }));
  await post('/second-factors/passkeys', { pending, name, response });
}

/** Signs in with a passkey that the person chooses in a dialog of the browser. Throws ApiError. */
export async function signInByPasskey(): Promise<Person> {
  const { options } = await post<{ readonly options: PublicKeyCredentialRequestOptionsJSON }>(
    '/session/passkey/options',
  );
  const publicKey = PublicKeyCredential.parseRequestOptionsFromJSON(options);
  const response = await ofBrowser(() => navigator.credentials.get({ publicKey }));
  return post<Person>('/session/passkey', response);
}

/** The JSON of the credential. Throws ApiError if the person or the browser declined. */
async function ofBrowser(ask: () => Promise<Credential | null>): Promise<unknown> {
  try {
    const credential = await ask();
    if (credential instanceof PublicKeyCredential) return credential.toJSON();
  } catch (error) {
    if (error instanceof DOMException && error.name === 'InvalidStateError') {
      throw new ApiError(0, 'passkey_exists', 'This device already has a passkey of yours.');
    }
    if (!(error instanceof DOMException)) throw error;
  }
  throw new ApiError(0, 'passkey_declined', 'No passkey was used: it was canceled, timed out or not found.');
}
