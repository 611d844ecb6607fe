/** The protocol with the process that inspects files: JSON on its standard input and output, as for imports. */
import { Problem, type ProblemCode } from '../../base/problem.ts';
import { Secret } from '../../base/secret.ts';
import { type Inspection, type InspectionInput, inspect } from './inspection.ts';

type Request = {
  readonly name: string;
  readonly base64: string;
  readonly password?: string | undefined;
  readonly host?: string | undefined;
  readonly now: number;
};

type Answer =
  | Inspection
  | { readonly code: ProblemCode; readonly detail: string; readonly hint?: string | undefined };

/** The request for the other process. */
export function inspectionRequest({ source, password, ...rest }: InspectionInput): Secret {
  const { name, bytes } = source;
  const request: Request = { name, base64: bytes.toString('base64'), password: password?.expose(), ...rest };
  return new Secret(Buffer.from(JSON.stringify(request)));
}

/** Runs a request in the other process and returns the text of the response. Throws only bugs. */
export async function inspectionAnswer(text: string): Promise<string> {
  const { name, base64, password, ...rest } = JSON.parse(text) as Request;
  const source = { name, bytes: Buffer.from(base64, 'base64') };
  const secret = password === undefined ? undefined : new Secret(password);
  const answer: Answer = await inspect({ source, password: secret, ...rest }).catch((error: unknown) => {
    if (!(error instanceof Problem)) throw error;
    return { code: error.code, detail: error.message, hint: error.hint };
  });
  return JSON.stringify(answer);
}

/** The description in a response. Throws the problem that the other process reported. */
export function inspectionIn(text: string): Inspection {
  const answer = JSON.parse(text) as Answer;
  if (!('code' in answer)) return answer;
  const { code, detail, hint } = answer;
  throw new Problem(code, { detail, ...(hint !== undefined && { hint }) });
}
