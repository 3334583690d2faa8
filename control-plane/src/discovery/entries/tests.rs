mod steps;
