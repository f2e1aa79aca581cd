/** Why a command could not do what it was asked. The message is for the person at the terminal: what, where, what to do. */
export class CommandError extends Error {}
