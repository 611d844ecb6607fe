/**
 * What the private CA issues, judged by programs of others: zlint, which knows the RFCs, and the path validation of
 * OpenSSL, Go, Java and GnuTLS.
 */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, describe, type TestContext, test } from 'node:test';
import { promisify } from 'node:util';
import { minute } from '../../../src/base/duration.ts';
import { goFolders } from '../../harness/ca/pebble-files.ts';
import { identifier, makeLeaf } from '../../harness/ca/private-chain.ts';
import { quickJava } from '../../harness/processes/java.ts';
import { findProgram, needs } from '../../harness/processes/missing-program.ts';
import { tempDir } from '../../harness/temp-dir.ts';
import { privateSamples, type Sample, type SampleFiles, sampleFiles } from './private-samples.ts';

const run = promisify(execFile);

/** Rules of the CA/Browser Forum for public CAs that a private one breaks on purpose. All rules of RFCs apply. */
const notForPrivateCas: Readonly<Record<string, string>> = {
  e_ca_country_name_missing: 'the CA belongs to the vault, not to a company in a country',
  e_ca_organization_name_missing: 'the CA belongs to the vault, not to a company in a country',
  e_sub_ca_aia_missing: 'there is no OCSP responder, and servers send the intermediate',
  e_sub_cert_aia_missing: 'there is no OCSP responder, and servers send the intermediate',
  e_sub_ca_certificate_policies_missing: 'policies name how a public CA validates',
  e_sub_cert_certificate_policies_missing: 'policies name how a public CA validates',
  e_sub_cert_cert_policy_empty: 'policies name how a public CA validates',
  e_sub_ca_crl_distribution_points_missing:
    'clients trust the root, whose CRL they would have to look up first',
  e_ext_nc_intersects_reserved_ip: 'addresses of private networks are what a private CA is for',
  e_ext_san_contains_reserved_ip: 'addresses of private networks are what a private CA is for',
  e_ext_san_uniform_resource_identifier_present: 'SPIFFE IDs are URIs',
  e_algorithm_identifier_improper_encoding: 'public CAs do not know Ed25519',
};

const goProgram = `package main

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
)

func read(path string) *x509.Certificate {
	text, err := os.ReadFile(path)
	if err != nil {
		panic(err)
	}
	block, _ := pem.Decode(text)
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		panic(err)
	}
	return certificate
}

func main() {
	for at := 1; at+3 < len(os.Args); at += 4 {
		roots, between := x509.NewCertPool(), x509.NewCertPool()
		roots.AddCert(read(os.Args[at]))
		between.AddCert(read(os.Args[at+1]))
		options := x509.VerifyOptions{Roots: roots, Intermediates: between, DNSName: os.Args[at+3]}
		options.KeyUsages = []x509.ExtKeyUsage{x509.ExtKeyUsageAny}
		if _, err := read(os.Args[at+2]).Verify(options); err != nil {
			fmt.Println(err)
		} else {
			fmt.Println("valid")
		}
	}
}
`;

const javaProgram = `import java.io.*;
import java.security.cert.*;
import java.util.*;

public class Validate {
  public static void main(String[] paths) throws Exception {
    CertificateFactory factory = CertificateFactory.getInstance("X.509");
    for (int at = 0; at + 3 < paths.length; at += 4) {
      List<Certificate> path = new ArrayList<>();
      for (int more = 2; more >= 1; more--) {
        try (InputStream file = new FileInputStream(paths[at + more])) {
          path.add(factory.generateCertificate(file));
        }
      }
      X509Certificate root;
      try (InputStream file = new FileInputStream(paths[at])) {
        root = (X509Certificate) factory.generateCertificate(file);
      }
      Collection<? extends CRL> crls;
      try (InputStream file = new FileInputStream(paths[at + 3])) {
        crls = factory.generateCRLs(file);
      }
      PKIXParameters parameters = new PKIXParameters(Set.of(new TrustAnchor(root, null)));
      parameters.addCertStore(CertStore.getInstance("Collection", new CollectionCertStoreParameters(crls)));
      parameters.setRevocationEnabled(true);
      try {
        CertPathValidator.getInstance("PKIX").validate(factory.generateCertPath(path), parameters);
        System.out.println("valid");
      } catch (CertPathValidatorException error) {
        System.out.println(error.getMessage());
      }
    }
  }
}
`;

/** What zlint found, by the names of its rules. */
function resultsIn(json: string): readonly (readonly [string, string])[] {
  const found = JSON.parse(json) as Record<string, { readonly result: string }>;
  return Object.entries(found).map(([rule, { result }]) => [rule, result]);
}

type Written = { readonly sample: Sample; readonly files: SampleFiles; readonly isValid: boolean };

describe('a chain of the private CA', () => {
  const now = Date.now();
  let samples: readonly Sample[] = [];
  /** Each validator must find these wrong, or it would find anything right. */
  let strangers: readonly Sample[] = [];

  before(async () => {
    samples = await privateSamples(now);
    const [one, other] = [samples[0], samples.at(-1)];
    assert(one && other);
    const outside = await makeLeaf(other.intermediate, {
      notBefore: now - minute,
      notAfter: now + minute,
      identifiers: [identifier('www.example.net')],
    });
    strangers = [
      { ...one, root: other.root, name: 'another root', host: undefined },
      { ...other, leaf: outside, name: 'a name that is not permitted', host: 'www.example.net' },
    ];
  });

  const written = (folder: string): Promise<readonly Written[]> =>
    Promise.all(
      [...samples, ...strangers].map(async (sample) => {
        const files = await sampleFiles(folder, sample, now);
        return { sample, files, isValid: !strangers.includes(sample) };
      }),
    );

  /** Compares what a program found of each with what it is. */
  function assertJudged(all: readonly Written[], verdicts: readonly string[]): void {
    const judged = all.map(({ sample: { name } }, at) => [name, verdicts[at] === 'valid'] as const);
    const right = all.map(({ sample: { name }, isValid }) => [name, isValid] as const);
    assert.deepEqual(judged, right, verdicts.join('\n'));
  }

  /** Runs the program on each. */
  async function judgedBy(
    program: string,
    t: TestContext,
    argsFor: (one: Written) => string[],
  ): Promise<void> {
    const all = await written(tempDir(t));
    const verdicts: string[] = [];
    for (const one of all) {
      verdicts.push(
        await run(program, argsFor(one)).then(
          () => 'valid',
          (error: Error) => error.message,
        ),
      );
    }
    assertJudged(all, verdicts);
  }

  test('passes zlint except for the listed rules of public CAs', needs('zlint', goFolders), async (t) => {
    const zlint = findProgram('zlint', goFolders);
    assert(zlint);
    const broken = new Set<string>();
    const judged = new Set<string>();
    for (const { sample, files, isValid } of await written(tempDir(t))) {
      if (!isValid) continue;
      for (const part of ['root', 'intermediate', 'leaf'] as const) {
        const { certificate } = sample[part];
        if (judged.has(certificate.toString('hex'))) continue;
        judged.add(certificate.toString('hex'));
        const results = resultsIn((await run(zlint, [files[part]])).stdout);
        assert(results.filter(([, result]) => result === 'pass').length > 20);
        for (const [rule, result] of results) {
          if (result !== 'error' && result !== 'fatal') continue;
          assert(Object.hasOwn(notForPrivateCas, rule), `${part} of ${sample.name}: ${rule}`);
          broken.add(rule);
        }
      }
    }
    assert.deepEqual([...broken].toSorted(), Object.keys(notForPrivateCas).toSorted());
  });

  test('is valid for OpenSSL at its strictest, with CRLs', needs('openssl'), (t) =>
    judgedBy('openssl', t, ({ sample: { host }, files: { root, intermediate, leaf, crls } }) => [
      ...['verify', '-x509_strict', '-crl_check_all', '-no-CApath', '-no-CAstore'],
      ...['-CAfile', root, '-untrusted', intermediate, '-CRLfile', crls],
      ...(host === undefined ? [] : ['-verify_hostname', host]),
      leaf,
    ]),
  );

  test('is valid for GnuTLS', needs('certtool'), (t) =>
    judgedBy('certtool', t, ({ sample: { host }, files: { root, chain } }) => [
      ...['--verify', '--load-ca-certificate', root, '--infile', chain],
      ...(host === undefined ? [] : [`--verify-hostname=${host}`]),
    ]),
  );

  test('is valid for Go', needs('go'), async (t) => {
    const dir = tempDir(t);
    writeFileSync(join(dir, 'main.go'), goProgram);
    const all = await written(dir);
    const args = all.flatMap(({ sample, files: { root, intermediate, leaf } }) => [
      ...[root, intermediate, leaf, sample.host ?? ''],
    ]);
    const { stdout } = await run('go', ['run', join(dir, 'main.go'), ...args], {
      env: { ...process.env, GO111MODULE: 'off' },
    });
    assertJudged(all, stdout.trimEnd().split('\n'));
  });

  test('is valid for Java, with CRLs', needs('java'), async (t) => {
    const dir = tempDir(t);
    writeFileSync(join(dir, 'Validate.java'), javaProgram);
    const all = await written(dir);
    const args = all.flatMap(({ files: { root, intermediate, leaf, crls } }) => [
      ...[root, intermediate, leaf, crls],
    ]);
    const { stdout } = await run('java', [...quickJava, join(dir, 'Validate.java'), ...args]);
    assertJudged(all, stdout.trimEnd().split('\n'));
  });
});
