/** Prints the key of an ACME client, once, with the lines that use it. */
import { acmeDirectoryUrl, acmeRecipes, exampleDomain } from '../../../base/acme-recipes.ts';
import { type AcmeClientKey, textOfKey } from '../../../domain/acme-server/clients/acme-client-keys.ts';
import type { AcmeClientView } from '../../../domain/acme-server/clients/acme-client-views.ts';
import { serverUrl } from '../../serving/doctor-server.ts';
import type { Settings } from '../../settings/settings.ts';
import { facts, jsonText } from '../../terminal/output.ts';
import type { Terminal } from '../../terminal/terminal.ts';

/** Prints the kid and the HMAC key, and only them, on standard output; what to do with them on standard error. */
export function printKey(
  terminal: Pick<Terminal, 'stdout' | 'stderr'>,
  settings: Settings,
  { json }: { readonly json: boolean },
  client: AcmeClientView,
  key: AcmeClientKey,
): void {
  const base = serverUrl(settings);
  const hmacKey = textOfKey(key).expose();
  const { kid } = key;
  const { id, name, issuers } = client;
  const directories = issuers.map((issuer) => acmeDirectoryUrl(base, issuer));
  terminal.stdout.write(
    json
      ? jsonText({ id, name, kid, hmac_key: hmacKey, directories })
      : facts([
          ['kid', kid],
          ['hmac_key', hmacKey],
        ]),
  );
  const [directory = ''] = directories;
  const line = acmeRecipes.certbot.lines({ directory, kid, hmacKey, domain: exampleDomain(client.domains) });
  terminal.stderr.write(
    `The HMAC key is not shown again. Give it to ${name} only.\n` +
      directories.map((url) => `Directory: ${url}\n`).join('') +
      (base.startsWith('https:') ? '' : 'ACME programs need HTTPS: serve it, or set --public-url.\n') +
      `With certbot, for example:\n${line.replace(/^/gm, '  ')}\n`,
  );
}
