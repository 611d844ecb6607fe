/**
 * acme4j, a library for Java, in a small program around it. Maven puts it into its repository:
 * `mvn dependency:get -Dartifact=org.shredzone.acme4j:acme4j-client:3.5.0`.
 */

import { globSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { quickJava, quickKeytool } from '../../processes/java.ts';
import { needs, needsFile } from '../../processes/missing-program.ts';
import { type AcmeProgram, ran } from './program.ts';

/** It and what it depends on. */
const libraries = [
  'acme4j-client-3.5.0',
  'bcprov-jdk18on-*',
  'bcpkix-jdk18on-*',
  'bcutil-jdk18on-*',
  'jose4j-*',
  'slf4j-api-2.*',
];

const javaProgram = `import java.io.*;
import java.net.URI;
import java.nio.file.*;
import java.security.*;
import java.security.cert.*;
import java.time.*;
import javax.net.ssl.*;
import org.shredzone.acme4j.*;
import org.bouncycastle.jce.provider.BouncyCastleProvider;
import org.shredzone.acme4j.util.KeyPairUtils;

public class Client {
  public static void main(String[] given) throws Exception {
    Security.addProvider(new BouncyCastleProvider());
    Path home = Path.of(given[0]);
    trust(given[2]);
    Session session = new Session(given[1]);
    KeyPair accountKey = keyOf(home.resolve("account.key"));
    AccountBuilder builder = new AccountBuilder().agreeToTermsOfService().useKeyPair(accountKey);
    if (given[3].equals("register")) {
      builder.withKeyIdentifier(given[4], given[5]).createLogin(session);
      return;
    }
    Login login = builder.onlyExisting().createLogin(session);
    if (given[3].equals("deactivate")) {
      login.getAccount().deactivate();
      return;
    }
    if (given[3].equals("change-key")) {
      KeyPair other = KeyPairUtils.createECKeyPair("secp384r1");
      login.getAccount().changeKey(other);
      try (Writer writer = Files.newBufferedWriter(home.resolve("account.key"))) {
        KeyPairUtils.writeKeyPair(other, writer);
      }
      return;
    }
    String name = given[4];
    Path stored = home.resolve(name + ".pem");
    Path location = home.resolve(name + ".url");
    KeyPair key = keyOf(home.resolve(name + ".key"));
    if (given[3].equals("revoke")) {
      try (InputStream file = Files.newInputStream(stored)) {
        X509Certificate certificate = (X509Certificate) CertificateFactory.getInstance("X.509").generateCertificate(file);
        org.shredzone.acme4j.Certificate.revoke(session, key, certificate, RevocationReason.SUPERSEDED);
      }
      return;
    }
    OrderBuilder order = login.newOrder().domain(name);
    if (given[3].equals("renew-if-due")) {
      var certificate = login.bindCertificate(URI.create(Files.readString(location)).toURL());
      var information = certificate.getRenewalInfo();
      System.out.println("window from " + information.getSuggestedWindowStart());
      if (information.renewalIsNotRequired(Instant.now())) return;
      order.replaces(certificate);
    }
    Order placed = order.create();
    placed.waitUntilReady(Duration.ofSeconds(20));
    placed.execute(key);
    placed.waitForCompletion(Duration.ofSeconds(20));
    try (Writer file = Files.newBufferedWriter(stored)) {
      placed.getCertificate().writeCertificate(file);
    }
    Files.writeString(location, placed.getCertificate().getLocation().toString());
  }

  static void trust(String root) throws Exception {
    KeyStore store = KeyStore.getInstance("PKCS12");
    store.load(null, null);
    try (InputStream file = new FileInputStream(root)) {
      store.setCertificateEntry("root", CertificateFactory.getInstance("X.509").generateCertificate(file));
    }
    TrustManagerFactory factory = TrustManagerFactory.getInstance("PKIX");
    factory.init(store);
    SSLContext context = SSLContext.getInstance("TLS");
    context.init(null, factory.getTrustManagers(), null);
    SSLContext.setDefault(context);
  }

  static KeyPair keyOf(Path file) throws IOException {
    if (Files.exists(file)) {
      try (Reader reader = Files.newBufferedReader(file)) {
        return KeyPairUtils.readKeyPair(reader);
      }
    }
    KeyPair made = KeyPairUtils.createECKeyPair("secp256r1");
    try (Writer writer = Files.newBufferedWriter(file)) {
      KeyPairUtils.writeKeyPair(made, writer);
    }
    return made;
  }
}
`;

function jars(): readonly string[] {
  const repository = join(homedir(), '.m2', 'repository');
  return libraries.map((library) => {
    const found = globSync(`**/${library}.jar`, { cwd: repository }).at(-1);
    return found === undefined ? '' : join(repository, found);
  });
}

let folder: Promise<string> | undefined;

/** The folder of the compiled program, for all tests of the process. */
function compiled(): Promise<string> {
  folder ??= compile();
  return folder;
}

async function compile(): Promise<string> {
  const dir = mkdtempSync(join(tmpdir(), 'vault-acme4j-'));
  process.once('exit', () => rmSync(dir, { recursive: true, force: true }));
  writeFileSync(join(dir, 'Client.java'), javaProgram);
  const { isDone, output } = await ran(
    'javac',
    [...quickKeytool, '-cp', jars().join(delimiter), 'Client.java'],
    dir,
  );
  if (!isDone) throw new Error(output);
  return dir;
}

export const acme4j: AcmeProgram = {
  name: 'acme4j',
  asksForRenewalInfo: true,
  needs: () => {
    const library = needsFile('acme4j', jars()[0] ?? '');
    return library.skip === undefined ? needs('javac') : library;
  },
  home: (dir, { directoryUrl, caFile, kid, hmacKey }) => {
    const run = async (...args: readonly string[]) =>
      ran(
        'java',
        [
          ...quickJava,
          ...[
            '-cp',
            [await compiled(), ...jars()].join(delimiter),
            'Client',
            dir,
            directoryUrl,
            caFile,
            ...args,
          ],
        ],
        dir,
      );
    return {
      register: () => run('register', kid, hmacKey),
      issue: (name) => run('issue', name),
      renew: (name) => run('issue', name),
      renewIfDue: (name) => run('renew-if-due', name),
      revoke: (name) => run('revoke', name),
      changeKey: () => run('change-key'),
      deactivate: () => run('deactivate'),
      certificate: (name) => join(dir, `${name}.pem`),
    };
  },
};
