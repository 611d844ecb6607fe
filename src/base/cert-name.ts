/**
 * The name that identifies a certificate in paths, allowlists and commands. Only `parseCertName` makes one, so code
 * that holds a `CertName` need not check again.
 */
declare const brand: unique symbol;

export type CertName = string & { readonly [brand]: 'CertName' };

const pattern = /^(?!\.)[A-Za-z0-9*._-]{1,128}$/;

/** The rule in words, for messages. */
export const certNameRule =
  'a certificate name has 1 to 128 letters, digits or "*._-", does not begin with a dot, and is not just "*"';

/** The rule for certificates that are yet to be created: commands take what begins with a dash for an option. */
export const newCertNameRule = certNameRule.replace('with a dot', 'with a dot or a dash');

/** The name of a certificate that is yet to be created, or undefined where the text breaks the rule. */
export function parseNewCertName(text: string): CertName | undefined {
  return text.startsWith('-') ? undefined : parseCertName(text);
}

/** The name, or undefined where the text breaks the rule. */
export function parseCertName(text: string): CertName | undefined {
  return text !== '*' && pattern.test(text) ? (text as CertName) : undefined;
}
