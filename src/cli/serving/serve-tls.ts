/** From the settings to the vault's own HTTPS, and what is said where they do not allow any, or plain HTTP would be unsafe. */
import { isIP } from 'node:net';
import { type Identifier, isAddress, parseIdentifier } from '../../base/identifier.ts';
import { OperatorError } from '../../base/operator-error.ts';
import type { Vault } from '../../domain/vault.ts';
import { type TicketSeed, TlsEndpoint } from '../../http/tls/tls-endpoint.ts';
import { tlsFilesSource } from '../../http/tls/tls-files.ts';
import { ownCertificateSource } from '../../http/tls/tls-source.ts';
import { isLoopback, type Settings } from '../settings/settings.ts';
import { refuseExposedKeyFile } from '../terminal/private-files.ts';

/**
 * Throws OperatorError where the settings would show private keys to everybody on the way, or call an address HTTP that
 * speaks HTTPS.
 */
export function refuseUnsafe({ listen, tls, insecureHttp, publicUrl, acmeTlsListen }: Settings): void {
  if (tls !== undefined && acmeTlsListen?.port === listen.port && listen.port !== 0) {
    throw new OperatorError(`--listen and --acme-tls-listen both want port ${listen.port}`, {
      hint: 'Leave --acme-tls-listen out: tls-alpn-01 challenges are answered on the HTTPS port too.',
    });
  }
  if (tls !== undefined && publicUrl?.startsWith('http:')) {
    throw new OperatorError(`the vault serves HTTPS, and ${publicUrl} is plain HTTP`, {
      hint: `Set --public-url ${publicUrl.replace(/^http:/, 'https:')}, or serve without a certificate.`,
    });
  }
  if (tls !== undefined || insecureHttp || isLoopback(listen.host)) return;
  throw new OperatorError(`plain HTTP on ${listen.host} would show private keys to everybody on the way`, {
    hint:
      'Serve HTTPS with --tls-certificate NAME (the vault makes it) or with --tls-cert-file and --tls-key-file; ' +
      'or listen on 127.0.0.1 behind a proxy that speaks HTTPS; or accept the risk with --insecure-http.',
  });
}

/** The vault's end of HTTPS, ready to be served; undefined for plain HTTP. Throws OperatorError. */
export async function openTls(
  vault: Vault,
  settings: Settings,
  ticketSeed?: TicketSeed,
): Promise<TlsEndpoint | undefined> {
  const { tls } = settings;
  if (tls === undefined) return undefined;
  if (tls.kind === 'files') {
    refuseExposedKeyFile(tls.keyFile);
    return TlsEndpoint.open(vault, tlsFilesSource(vault, tls), ticketSeed);
  }
  const hosts = hostsOf(settings);
  const endpoint = await TlsEndpoint.open(vault, ownCertificateSource(vault, tls.name, hosts), ticketSeed);
  const { leaf } = endpoint.identity;
  const missing = hosts.filter((host) =>
    isAddress(host) ? leaf.checkIP(host) === undefined : leaf.checkHost(host) === undefined,
  );
  if (missing.length > 0) {
    vault.log.warn(
      { certificate: tls.name, hosts: missing, domains: leaf.subjectAltName },
      'the certificate for HTTPS is not for the address of the vault; change it with "vault certificate update --domain"',
    );
  }
  return endpoint;
}

/** What clients call the vault: the public URL's host, or else the one address that it listens on. */
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
