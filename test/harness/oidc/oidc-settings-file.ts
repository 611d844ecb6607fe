/** A settings file with a provider, for commands and servers. */
import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { CommandLine } from '../processes/command-line.ts';
import { clientId, clientSecret, type ScriptedProvider } from './scripted-provider.ts';

/** Writes `vault.yaml` for a server at `url`, whose people of the group vault-admins are admin. */
export function writeOidcSettings(
  { data, file }: CommandLine,
  {
    provider,
    url,
    client = clientId,
    more = {},
  }: {
    readonly provider: Pick<ScriptedProvider, 'issuer'>;
    readonly url: string;
    readonly client?: string;
    readonly more?: Readonly<Record<string, unknown>>;
  },
): void {
  const secret = file(clientSecret);
  chmodSync(secret, 0o600);
  const settings = {
    public_url: url,
    oidc_issuer: provider.issuer,
    oidc_client_id: client,
    oidc_client_secret_file: secret,
    oidc_admins: ['vault-admins'],
    ...more,
  };
  writeFileSync(join(data, 'vault.yaml'), JSON.stringify(settings));
}
