/**
 * The protocol with the process that reads imported files: JSON on its standard input and output, so that passwords and
 * keys appear neither in arguments, nor in the environment, nor in files.
 */
import { Problem, type ProblemCode } from '../../base/problem.ts';
import { Secret } from '../../base/secret.ts';
import { type BundleInput, type CertificateBundle, readCertificateBundle } from './certificate-bundle.ts';

type Request = {
  readonly sources: readonly { readonly name: string; readonly base64: string }[];
  readonly password?: string | undefined;
  readonly now: number;
  readonly authorities?: BundleInput['authorities'];
};

type Answer =
  | {
      readonly leaf: string;
      readonly chain: readonly string[];
      readonly privateKey: string;
      readonly warnings: readonly string[];
    }
  | { readonly code: ProblemCode; readonly detail: string; readonly hint?: string | undefined };

/** The request for the other process. */
export function bundleRequest({ sources, password, now, authorities }: BundleInput): Secret {
  const request: Request = {
    sources: sources.map(({ name, bytes }) => ({ name, base64: bytes.toString('base64') })),
    password: password?.expose(),
    now,
    ...(authorities !== undefined && { authorities }),
  };
  return new Secret(Buffer.from(JSON.stringify(request)));
}

/** Runs a request in the other process and returns the text of the response. Throws only bugs. */
export function bundleAnswer(text: string): string {
  const { sources, password, ...rest } = JSON.parse(text) as Request;
  const files = sources.map(({ name, base64 }) => ({ name, bytes: Buffer.from(base64, 'base64') }));
  return JSON.stringify(
    answerOf({ sources: files, ...rest, ...(password !== undefined && { password: new Secret(password) }) }),
  );
}

/** The bundle in a response. Throws the problem that the other process reported. */
export function bundleIn(text: string): CertificateBundle {
  const answer = JSON.parse(text) as Answer;
  if ('code' in answer) {
    const { code, detail, hint } = answer;
    throw new Problem(code, { detail, ...(hint !== undefined && { hint }) });
  }
  const { leaf, chain, privateKey, warnings } = answer;
  return {
    leaf: Buffer.from(leaf, 'base64'),
    chain: chain.map((der) => Buffer.from(der, 'base64')),
    privateKey: new Secret(Buffer.from(privateKey, 'base64')),
    warnings: [...warnings],
  };
}

function answerOf(input: BundleInput): Answer {
  try {
    const { leaf, chain, privateKey, warnings } = readCertificateBundle(input);
    return {
      leaf: leaf.toString('base64'),
      chain: chain.map((der) => der.toString('base64')),
      privateKey: privateKey.expose().toString('base64'),
      warnings,
    };
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    return { code: error.code, detail: error.message, hint: error.hint };
  }
}
