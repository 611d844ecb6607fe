/** A vault with a certificate and an API key for the client installer, and the places where the two are tried. */
import { type TestContext, test } from 'node:test';
import { parseCertName } from '../../src/base/cert-name.ts';
import { localCli } from '../../src/domain/audit.ts';
import { importCertificate } from '../../src/domain/certificate-import.ts';
import { everyShell, everyTool, type Machine, type Shell, type Tool } from './client-installer.ts';
import { eventsOf, makeCertificate, makeKey, renewCertificate } from './http-fixtures.ts';
import type { needs } from './missing-program.ts';
import { type TestServer, testServer } from './test-server.ts';
import { TestWorld } from './test-world.ts';

export type ClientVault = TestServer & {
  readonly key: string;
  readonly renew: (name?: string) => Promise<void>;
  /** A version that was made elsewhere. */
  readonly import: (name: string, fullchain: string, key: string) => Promise<void>;
  /** What was downloaded so far, as `artifact version`. */
  readonly downloads: () => string[];
  /** Sets up the usual job: full chain and key of `web`. */
  readonly install: (
    machine: Machine,
    args?: readonly string[],
    launch?: Parameters<Machine['run']>[1],
  ) => ReturnType<Machine['run']>;
};

export async function clientVault(
  t: Pick<TestContext, 'after'>,
  { certificates = ['web'] }: { certificates?: readonly string[] } = {},
): Promise<ClientVault> {
  // The script looks at the machine's clock, so the certificates must be of today.
  const server = await testServer(t, { world: new TestWorld(Date.now()) });
  for (const name of certificates) await makeCertificate(server.vault, name, ['www.example.test']);
  const { raw: key } = await makeKey(server.vault);
  return {
    ...server,
    key,
    renew: (name = 'web') => renewCertificate(server.vault, name),
    import: async (name, fullchain, privateKey) => {
      const certName = parseCertName(name);
      if (certName === undefined) throw new Error(name);
      const sources = [{ name: 'bundle.pem', bytes: Buffer.from(`${fullchain}${privateKey}`) }];
      await importCertificate(server.vault, localCli, { name: certName, sources });
    },
    downloads: () =>
      eventsOf(server.dataDir, 'certificate.download').map(
        ({ detail }) => `${detail.artifact} ${detail.version}`,
      ),
    install: (machine, args = [], launch = {}) =>
      machine.run(['--server', server.url, ...usual(machine), ...args], {
        ...launch,
        environment: { SERVICE_API_KEY: key, ...launch.environment },
      }),
  };
}

/** The options of the usual job, but for the server. */
export function usual(machine: Machine): string[] {
  const files = ['--file', 'fullchain.crt=tls.crt', '--file', 'private.key=tls.key'];
  return ['--certificate', 'web', ...files, '--destination', machine.destination];
}

export type Place = { readonly shell: Shell; readonly tool: Tool };

/**
 * Every shell with curl, and dash with every other tool that speaks to a vault without TLS: shell and tool meet in few
 * lines of the script, and shells.test.ts runs the whole matrix. `openssl` has its turn in tls.test.ts.
 */
export function everyPlace(): (Place & { name: string; options: ReturnType<typeof needs> })[] {
  return everyShell().flatMap(([shell, isShellThere]) =>
    everyTool()
      .filter(([tool]) => tool === 'curl' || (shell === 'dash' && tool !== 'openssl'))
      .map(([tool, isToolThere]) => {
        const options = isShellThere.skip === undefined ? isToolThere : isShellThere;
        return { name: `in ${shell} with ${tool}`, options, shell, tool };
      }),
  );
}

/** The same test in each place. */
export function inEveryPlace(title: string, run: (t: TestContext, place: Place) => Promise<void>): void {
  for (const { name, options, ...place } of everyPlace())
    test(`${title}, ${name}`, options, (t) => run(t, place));
}
