/** Sets up HTTPS of the vault from the settings, and refuses insecure or conflicting settings. */
import { isIP } from 'node:net';
import { type Identifier, isAddress, parseIdentifier } from '../../base/identifier.ts';
import { OperatorError } from '../../base/operator-error.ts';
import type { Vault } from '../../domain/vault.ts';
import { TlsEndpoint } from '../../http/tls/tls-endpoint.ts';
import { tlsFilesSource } from '../../http/tls/tls-files.ts';
import { ownCertificateSource } from '../../http/tls/tls-source.ts';
import { isLoopback, type Settings } from '../settings/settings.ts';
import { refuseExposedKeyFile } from '../terminal/private-files.ts';

/**
 * Throws OperatorError if the settings would send private keys in clear text over the network, or conflict with HTTPS.
 */
export function refuseInsecureSettings({
  listen,
  tls,
  insecureHttp,
  publicUrl,
  acmeTlsListen,
}: Settings): void {
  if (tls !== undefined && acmeTlsListen?.port === listen.port && listen.port !== 0) {
    throw new OperatorError(`--listen and --acme-tls-listen both use port ${listen.port}`, {
      hint: 'Remove --acme-tls-listen: the HTTPS port also answers tls-alpn-01 challenges.',
    });
  }
  if (tls !== undefined && publicUrl?.startsWith('http:')) {
    throw new OperatorError(`--public-url: ${publicUrl} is plain HTTP, but the vault serves HTTPS`, {
      hint: `Use --public-url ${publicUrl.replace(/^http:/, 'https:')}, or serve plain HTTP.`,
    });
  }
  if (tls !== undefined || insecureHttp || isLoopback(listen.host)) return;
  throw new OperatorError(
    `refusing plain HTTP on ${listen.host}: private keys would cross the network in clear text`,
    {
      hint:
        'Serve HTTPS with --tls-certificate NAME (the private CA issues it) or with --tls-cert-file and --tls-key-file; ' +
        'or listen on 127.0.0.1 behind an HTTPS proxy; or accept the risk with --insecure-http.',
    },
  );
}

/** The TLS endpoint of the vault; undefined for plain HTTP. Throws OperatorError. */
export async function openTls(vault: Vault, settings: Settings): Promise<TlsEndpoint | undefined> {
  const { tls } = settings;
  if (tls === undefined) return undefined;
  if (tls.kind === 'files') {
    refuseExposedKeyFile(tls.keyFile);
    return TlsEndpoint.open(vault, tlsFilesSource(vault, tls));
  }
  const hosts = hostsOf(settings);
  const endpoint = await TlsEndpoint.open(vault, ownCertificateSource(vault, tls.name, hosts));
  const { leaf } = endpoint.identity;
  const missing = hosts.filter((host) =>
    isAddress(host) ? leaf.checkIP(host) === undefined : leaf.checkHost(host) === undefined,
  );
  if (missing.length > 0) {
    vault.log.warn(
      { certificate: tls.name, hosts: missing, domains: leaf.subjectAltName },
      'HTTPS certificate does not match the address of the vault; change it with "vault certificate update --domain"',
    );
  }
  return endpoint;
}

/** The hosts that clients use: the host of the public URL, or else the listen address. */
function hostsOf({ publicUrl, listen }: Settings): Identifier[] {
  const named = publicUrl === undefined ? undefined : new URL(publicUrl).hostname.replace(/^\[|\]$/g, '');
  if (named === undefined && isEveryAddress(listen.host)) return [];
  const hosts = [
    named ?? listen.host,
    ...(named === undefined && isLoopback(listen.host) ? ['localhost'] : []),
  ];
  return [...new Set(hosts.map(parseIdentifier).filter((host) => host !== undefined))];
}

function isEveryAddress(host: string): boolean {
  return isIP(host) !== 0 && /^[0:.]+$/.test(host);
}
