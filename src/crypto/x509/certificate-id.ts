/**
 * Serial number and authority key identifier of a certificate as encoded bytes: node:crypto shows neither leading zeros
 * nor the authority key identifier, and loading the X.509 library takes a tenth of a second.
 */

type Element = { readonly tag: number; readonly content: Buffer };

const integer = 0x02;
const objectIdentifier = 0x06;
const octetString = 0x04;
const extensions = 0xa3;
const keyIdentifier = 0x80;
/** 2.5.29.35, RFC 5280 §4.2.1.1. */
const authorityKeyIdentifier = Buffer.of(0x55, 0x1d, 0x23);

export type CertificateId = {
  /** The content of the INTEGER, with a leading zero if the first bit is set. */
  readonly serial: Buffer;
  readonly authorityKeyId: Buffer;
};

/** Undefined if the bytes are not a certificate (DER), or if it has no authority key identifier. */
export function serialAndAuthorityKeyId(der: Buffer): CertificateId | undefined {
  const [certificate] = elements(der);
  const [body] = elements(certificate?.content);
  const fields = elements(body?.content);
  const serial = fields.find(({ tag }) => tag === integer)?.content;
  const [list] = elements(fields.find(({ tag }) => tag === extensions)?.content);
  for (const extension of elements(list?.content)) {
    const parts = elements(extension.content);
    const isIt = parts.some(({ tag, content }) => {
      return tag === objectIdentifier && content.equals(authorityKeyIdentifier);
    });
    if (!isIt) continue;
    const [value] = elements(parts.find(({ tag }) => tag === octetString)?.content);
    const authorityKeyId = elements(value?.content).find(({ tag }) => tag === keyIdentifier)?.content;
    return serial && authorityKeyId && { serial, authorityKeyId };
  }
  return undefined;
}

/** The elements of the bytes in order (X.690 §8.1); none if a length is invalid. */
function elements(bytes: Buffer = Buffer.alloc(0)): Element[] {
  const found: Element[] = [];
  let at = 0;
  while (at + 2 <= bytes.length) {
    const first = bytes.readUInt8(at + 1);
    const size = first < 0x80 ? 0 : first & 0x7f;
    const begin = at + 2 + size;
    if (size > 4 || begin > bytes.length) return [];
    const length = size === 0 ? first : bytes.readUIntBE(at + 2, size);
    if (begin + length > bytes.length) return [];
    found.push({ tag: bytes.readUInt8(at), content: bytes.subarray(begin, begin + length) });
    at = begin + length;
  }
  return found;
}
