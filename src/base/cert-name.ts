/**
 * The name that identifies a certificate in paths, allowlists and commands. Only `parseCertName` creates one, so code
 * that holds a `CertName` need not check it again.
 */
declare const brand: unique symbol;

export type CertName = string & { readonly [brand]: 'CertName' };

const pattern = /^([A-Za-z0-9_-][A-Za-z0-9*._-]{0,127}|\*[A-Za-z0-9*._-]{1,127})$/;
const newPattern = /^([A-Za-z0-9_][A-Za-z0-9*._-]{0,127}|\*[A-Za-z0-9*._-]{1,127})$/;

/** As JSON Schema says it, without lookaheads, which generated clients in Go cannot read. */
export const certNamePattern = pattern.source;

/** Of new certificates. */
export const newCertNamePattern = newPattern.source;

/** The rule in words, for error messages. */
export const certNameRule =
  'a certificate name has 1 to 128 letters, digits or "*._-", does not begin with a dot, and is not just "*"';

/** The rule for new certificates: commands read a name that begins with a dash as an option. */
export const newCertNameRule = certNameRule.replace('with a dot', 'with a dot or a dash');

/** The name of a new certificate, or undefined if the text breaks the rule. */
export function parseNewCertName(text: string): CertName | undefined {
  return newPattern.test(text) ? (text as CertName) : undefined;
}

/** The name, or undefined if the text breaks the rule. */
export function parseCertName(text: string): CertName | undefined {
  return pattern.test(text) ? (text as CertName) : undefined;
}
