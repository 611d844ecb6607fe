/** Keys of ACME clients, printed once with the lines that use them, on this machine and from a server. */
import { acmeDirectoryUrl, acmeRecipes, exampleDomain } from '../../../base/acme-recipes.ts';
import { Secret } from '../../../base/secret.ts';
import { type AcmeClientKey, textOfKey } from '../../../domain/acme-server/clients/acme-client-keys.ts';
import type { AcmeClientView } from '../../../domain/acme-server/clients/acme-client-views.ts';
import { serverUrl } from '../../serving/doctor-server.ts';
import type { Settings } from '../../settings/settings.ts';
import { facts, jsonText } from '../../terminal/output.ts';
import type { Terminal } from '../../terminal/terminal.ts';

/** A client with its new key, and the directory URLs of its issuers. */
export type KeyedClient = {
  readonly client: Pick<AcmeClientView, 'id' | 'name' | 'kid' | 'domains'>;
  readonly hmacKey: Secret<string>;
  readonly directories: readonly string[];
};

/** What a server returns for a new key. */
export type KeyedReply = AcmeClientView & {
  readonly hmac_key: string;
  readonly directories: readonly { readonly url: string }[];
};

/** A client of this machine's vault. */
export function keyedHere(client: AcmeClientView, key: AcmeClientKey, settings: Settings): KeyedClient {
  const base = serverUrl(settings);
  const directories = client.issuers.map((issuer) => acmeDirectoryUrl(base, issuer));
  return { client: { ...client, kid: key.kid }, hmacKey: textOfKey(key), directories };
}

/** A client of a vault at a server. */
export function keyedThere({ hmac_key, directories, ...client }: KeyedReply): KeyedClient {
  return { client, hmacKey: new Secret(hmac_key), directories: directories.map(({ url }) => url) };
}

/** Prints the kid and the HMAC key, and only them, on standard output; what to do with them on standard error. */
export function printKey(
  terminal: Pick<Terminal, 'stdout' | 'stderr'>,
  { json }: { readonly json: boolean },
  { client, hmacKey: secret, directories }: KeyedClient,
): void {
  const hmacKey = secret.expose();
  const { id, name, kid, domains } = client;
  terminal.stdout.write(
    json
      ? jsonText({ id, name, kid, hmac_key: hmacKey, directories })
      : facts([
          ['kid', kid],
          ['hmac_key', hmacKey],
        ]),
  );
  const [directory = ''] = directories;
  const line = acmeRecipes.certbot.lines({ directory, kid, hmacKey, domain: exampleDomain(domains) });
  terminal.stderr.write(
    `The HMAC key is not shown again. Give it to ${name} only.\n` +
      directories.map((url) => `Directory: ${url}\n`).join('') +
      (directory.startsWith('https:') ? '' : 'ACME programs need HTTPS: serve it, or set --public-url.\n') +
      `With certbot, for example:\n${line.replace(/^/gm, '  ')}\n`,
  );
}
