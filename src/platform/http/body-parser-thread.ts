import { answerQuestions } from "../lib/asked-thread.ts";
import { JsonError } from "../lib/json/json.ts";
import { type Body, type Parsed, parseBody } from "./body-parser.ts";

// The inside of body-parser.ts.
answerQuestions<Body, Parsed>((body) => {
  try {
    return { value: parseBody(body) };
  } catch (error) {
    if (error instanceof JsonError) return { message: error.message, fault: error.fault };
    throw error;
  }
});
