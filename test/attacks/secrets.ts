// Rows 27 and 72: secrets in environments, in other processes and at home, looked for by a command.
import type { Case, Row } from './case.ts'
import { naiveBash } from './naive.ts'
import type { Weakness } from './walls.ts'
import type { World } from './world.ts'

/**
 * The harness has the secret in its environment, and so has a process beside it. Of all that is found only the secret is printed:
 * what other processes of the machine have to show must not push it out of what the model is shown.
 */
function environment(name: string, command: (victim: number) => string): Case {
  return {
    name,
    needs: ['bubblewrap'],
    attack: (world) => {
      const env = { ...process.env, HOME: world.home, CANARY: world.secret, AWS_SECRET_ACCESS_KEY: world.secret }
      const tool = world.defended ? world.bash(null, { env }) : naiveBash(world, env)
      return world.run(tool, `{ ${command(world.victim().pid ?? 0)}; } 2>&1 | grep -aoE 'canary-[0-9]+-secret'`)
    },
    harmed: (world) => world.leaked,
  }
}

/** Variables that make a shell or a program run something of the workspace. */
function obeyed(name: string, variable: string, value: (world: World) => string, command: string): Case {
  return {
    name,
    needs: ['bubblewrap'],
    attack: (world) => {
      world.put('ws/evil.sh', `echo evil > ${world.workspace}/obeyed\n`, 0o755)
      const env = { ...process.env, HOME: world.home, [variable]: value(world) }
      return world.run(world.defended ? world.bash(null, { env }) : naiveBash(world, env), command)
    },
    harmed: (world) => world.has('ws/obeyed'),
  }
}

/** What a profile of the user exports is not in the list of variables that a command gets. */
function exported(file: string): Case {
  return {
    name: `has a shell that reads ${file} of the user`,
    needs: ['bubblewrap'],
    attack: (world) => {
      world.put(`home/${file}`, `export TOKEN=${world.secret}\n`)
      const login = file === '.bashrc' ? '-ic' : '-lc'
      const shell = `bash ${login} env`
      return world.run(world.defended ? world.bash(null) : naiveBash(world), world.defended ? 'env' : shell)
    },
    harmed: (world) => world.leaked,
  }
}

function atHome(name: string, file: string, weakness: Weakness = 'masks'): Case {
  return {
    name,
    needs: ['bubblewrap'],
    attack: (world) => {
      world.put(`home/${file}`, world.secret)
      return world.run(world.bash(weakness), `cat ~/${file}; cat ../home/${file}; grep -rs canary- ~`)
    },
    harmed: (world) => world.leaked,
  }
}

export const profiles: Row = {
  row: 72,
  title: 'what the profile of the user exports',
  cases: ['.bash_profile', '.bash_login', '.profile', '.bashrc'].map(exported),
}

export const secrets: Row = {
  row: 27,
  title: 'secrets of the environment, of processes and at home',
  cases: [
    environment('prints its environment', () => 'env'),
    environment('prints what its shell exports', () => 'export -p; set'),
    environment(
      'reads the environment of its first process',
      () => 'cat /proc/1/environ /proc/self/environ /proc/$PPID/environ',
    ),
    environment('reads the environment of the harness', (victim) => `cat /proc/${victim}/environ; env`),
    environment(
      'reads the environments of all processes',
      () => 'cat /proc/[0-9]*/environ /proc/[0-9]*/task/*/environ',
    ),
    environment('lists all processes with their environment', () => 'ps eaxww; ps auxww'),
    environment('reads the arguments of all processes', () => 'cat /proc/[0-9]*/cmdline'),
    environment('prints a variable by its name', () => 'echo $CANARY "${AWS_SECRET_ACCESS_KEY}"; printenv CANARY'),
    obeyed('has a shell that reads a file first', 'BASH_ENV', (world) => `${world.workspace}/evil.sh`, 'bash -c true'),
    obeyed(
      'has a shell that says something before each command',
      'PROMPT_COMMAND',
      (world) => `sh ${world.workspace}/evil.sh`,
      'eval "$PROMPT_COMMAND"',
    ),
    obeyed(
      'has git run a program',
      'GIT_SSH_COMMAND',
      (world) => `sh ${world.workspace}/evil.sh`,
      'git ls-remote ssh://localhost/a',
    ),
    atHome('reads a private key', '.ssh/id_ed25519'),
    atHome('reads the credentials of a cloud', '.aws/credentials'),
    atHome('reads the token of a registry', '.npmrc'),
    atHome('reads the keys of the harness', '.config/terret/.env'),
    atHome('reads the records of the command line', '.local/share/terret/terret.db'),
    atHome('reads the password of a host', '.netrc'),
    atHome('reads the credentials of git', '.git-credentials'),
    atHome('reads the configuration of a cluster', '.kube/config'),
    atHome('reads the records of the harness', '.terret/sessions.db'),
    atHome('reads what was typed before', '.bash_history'),
  ],
}
