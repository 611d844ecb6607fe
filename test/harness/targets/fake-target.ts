/** A product in the test process that deploy targets install certificates on: its API, and what it holds. */
import { createPrivateKey, X509Certificate } from 'node:crypto';
import type { TestContext } from 'node:test';
import { encodePem, readPemBlocks } from '../../../src/crypto/pem.ts';
import type { Installed, Material, Target, TargetType } from '../../../src/targets/target.ts';
import { type FakeHandler, type FakeReply, type FakeRequest, FakeServer } from '../http/fake-server.ts';
import { loopbackGuard } from '../loopback-guard.ts';
import { TestWorld } from '../test-world.ts';

/** A certificate on a product, as PEM. */
export type Held = { readonly certificate: string; readonly chain: string; readonly privateKey: string };

/** The state of a product, and its API. */
export type FakeProduct = {
  readonly handler: FakeHandler;
  /** Its certificates, without those that it came with. */
  readonly held: () => readonly Held[];
  /** Another client installs this certificate in place of the one that is in use. */
  readonly replace?: (other: Held) => void;
  /** Another client deletes all of its certificates. */
  readonly clear?: () => void;
};

/** A product for the scenarios: its settings, secrets and behavior. */
export type FakeTarget<Config, Product extends FakeProduct = FakeProduct> = {
  readonly type: TargetType<Config>;
  /** Settings for the product at this URL. */
  readonly settings: (url: string) => Readonly<Record<string, unknown>>;
  /** What differs with wrong credentials, and the end of the error about them. */
  readonly wrong: Readonly<Record<string, unknown>>;
  readonly denial: RegExp;
  readonly wrongSecret: string;
  /** Secrets that no message may contain. */
  readonly secrets: readonly string[];
  readonly create: (server: FakeServer, world: TestWorld) => Product;
  /** Whether the request carries the private key. */
  readonly isInstallation: (request: FakeRequest) => boolean;
  /** Whether the request is for a session or an access token. */
  readonly isLogin?: (request: FakeRequest) => boolean;
  /** An error of the product. */
  readonly error: (status: number, words: string) => FakeReply;
  /** Whether errors of the product have words that people read. */
  readonly hasWords: boolean;
  /** Whether any response with a 2xx status means success. */
  readonly ignoresResponses?: boolean;
};

/** A target, and the product that it installs on. */
export type TargetBench<Product extends FakeProduct> = {
  readonly fake: FakeServer;
  readonly product: Product;
  readonly world: TestWorld;
  readonly target: Target;
  /** Another target of the type, with these changes to the settings. */
  readonly made: (changes: Readonly<Record<string, unknown>>) => Target;
  readonly install: (material: Material, remoteId?: string | null) => Promise<Installed>;
  /** False also for a type that has no `isInstalled`. */
  readonly isInstalled: (material: Material, remoteId?: string | null) => Promise<boolean>;
};

/** Starts the product; it stops when the test ends. With `origin`, requests to that origin reach it. */
export async function startTarget<Config, Product extends FakeProduct>(
  t: Pick<TestContext, 'after'>,
  api: FakeTarget<Config, Product>,
  {
    tls,
    origin,
  }: { readonly tls?: { readonly cert: string; readonly key: string }; readonly origin?: string } = {},
): Promise<TargetBench<Product>> {
  const [fake, world] = [new FakeServer(), new TestWorld()];
  const product = api.create(fake, world);
  fake.handler = product.handler;
  await fake.listen(origin, tls);
  t.after(() => fake[Symbol.asyncDispose]());
  const context = { world, outbound: fake.outbound, guard: loopbackGuard };
  const made = (changes: Readonly<Record<string, unknown>>) =>
    api.type.create(api.type.config.parse({ ...api.settings(fake.url), ...changes }), context);
  const target = made({});
  const { signal } = new AbortController();
  return {
    ...{ fake, product, world, target, made },
    install: (material, remoteId = null) => target.install(material, remoteId, signal),
    isInstalled: async (material, remoteId = null) => {
      const { privateKey: _, ...rest } = material;
      return (await target.isInstalled?.(rest, remoteId, signal)) ?? false;
    },
  };
}

/**
 * The certificates as a product accepts them: the first one belongs to the private key, and the next one issued each.
 * Undefined for anything else.
 */
export function heldFrom(certificates: string, privateKey: string): Held | undefined {
  try {
    const [certificate = '', ...chain] = readPemBlocks(certificates).map(({ der }) =>
      encodePem('CERTIFICATE', der),
    );
    const [leaf, ...issuers] = [certificate, ...chain].map((pem) => new X509Certificate(pem));
    if (leaf?.checkPrivateKey(createPrivateKey(privateKey)) !== true) return undefined;
    const isChain = issuers.every((issuer, at) => [leaf, ...issuers][at]?.verify(issuer.publicKey) === true);
    return isChain ? { certificate, chain: chain.join(''), privateKey } : undefined;
  } catch {
    // Not PEM, or not a certificate or key.
    return undefined;
  }
}

/** What a product holds after it got the material. */
export function heldOf({ certificate, chain, privateKey }: Material): Held {
  return { certificate, chain, privateKey: privateKey.expose() };
}

/** The SHA-256 fingerprint of a PEM certificate: pairs of hexadecimal digits in upper case with colons. */
export function fingerprintOf(certificate: string): string {
  return new X509Certificate(certificate).fingerprint256;
}

/** The text of a Base64 string. */
export function fromBase64(text: unknown): string {
  return Buffer.from(String(text), 'base64').toString();
}
